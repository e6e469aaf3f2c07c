"""A fleet as JSON, from somebody who may get it wrong."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.remote_fleet import REPORT_BYTES_MAX, FleetReport, Member, read_report

A, B = "http://10.0.0.5:8000", "http://10.0.0.6:8000"


def test_replicas_are_urls_or_urls_with_a_name():
    report = read_report(
        f'{{"ready": ["{A}/", {{"url": "{B}", "id": "job-17", "grpc_target": "10.0.0.6:9"}}],'
        ' "starting": 2, "colour": "red"}'.encode()
    )
    assert report == FleetReport((Member(A, A), Member("job-17", B, "10.0.0.6:9")), 2)


def test_who_is_ready_and_draining_is_draining():
    report = read_report(f'{{"ready": ["{A}", "{B}"], "draining": ["{A}"]}}'.encode())
    assert {member.url: member.is_draining for member in report.members} == {A: True, B: False}
    assert report.starting is None


def test_grpc_ports_that_are_not_told_are_derived():
    report = read_report(f'{{"ready": ["{A}"]}}'.encode(), grpc_target=lambda url: "10.0.0.5:8001")
    assert report.members[0].grpc_target == "10.0.0.5:8001"


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "no report of a fleet"),
        (b"3 ready", "no report of a fleet"),
        (b'{"starting": 1}', "missing required field `ready`"),
        (b'{"ready": 3}', "got `int`"),
        (b'{"ready": [], "starting": -1}', "`int` >= 0"),
        (b'{"ready": ["10.0.0.5:8000"]}', "'10.0.0.5:8000' is no base URL"),
        (b'{"ready": ["http://10.0.0.5:8000\\r\\nX: y"]}', "is no base URL"),
        (b'{"ready": ["http://10.0.0.5 :8000"]}', "is no base URL"),
        (b'{"ready": ["http://a:1", {"url": "http://a:1/", "id": "b"}]}', "'http://a:1' is ready twice"),
        (b'{"ready": ["http://10.0.0.5:99999"]}', "is no base URL"),
        (b'{"ready": ["http://h/?x=1"]}', "is no base URL"),
        (b'{"ready": ["http://a..b:8000"]}', "'http://a..b:8000' is no base URL"),
        (b'{"ready": ["http://%s:8000"]}' % (b"a" * 64), "is no base URL"),
        (b"[" * 100_000, "no report of a fleet"),
        (b" " * (REPORT_BYTES_MAX + 1), "at most"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(raw, complaint):
    with pytest.raises(ValueError) as refusal:
        read_report(raw)
    assert complaint in str(refusal.value)
    assert len(str(refusal.value)) < 400


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_a_value_error(raw):
    with contextlib.suppress(ValueError):
        read_report(raw)
