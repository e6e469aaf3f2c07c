"""What of a head is passed on, and what is refused: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import DropReason
from autoscaler.proxy.answers import Refusal, answer, dropped, error_event
from autoscaler.proxy.headers import REQUEST_FIELDS_REPLACED, BadHead, end_to_end, origin_form
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.request_ids import RequestIds


def passed_on(*raw: tuple[bytes, bytes]) -> list[tuple[str, str]]:
    return list(end_to_end(raw, without=REQUEST_FIELDS_REPLACED).items())


def test_order_case_and_duplicates_are_kept():
    assert passed_on((b"X-B", b"1"), (b"x-a", b"2"), (b"X-B", b"3"), (b"x-b", b"4")) == [
        ("X-B", "1"), ("x-a", "2"), ("X-B", "3"), ("x-b", "4"),
    ]  # fmt: skip


def test_hop_by_hop_fields_go_and_so_do_those_that_connection_names():
    assert passed_on(
        (b"Connection", b"Keep-Alive, X-Secret ,close"),
        (b"Keep-Alive", b"timeout=5"),
        (b"x-secret", b"1"),
        (b"TE", b"trailers"),
        (b"Trailer", b"x"),
        (b"Upgrade", b"h2c"),
        (b"HTTP2-Settings", b"AAMAAABkAARAAAAAAAIAAAAA"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Proxy-Authorization", b"Basic eDp5"),
        (b"Expect", b"100-continue"),
        (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ) == [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]


def test_a_value_that_is_no_utf8_is_transcoded_and_not_mutilated():
    assert passed_on((b"X-Name", b"caf\xe9"), (b"X-Utf8", "café".encode())) == [
        ("X-Name", "café"), ("X-Utf8", "café"),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [b"a\x00b", b"a\rb", b"a\nb", b"\x7f"])
def test_a_value_that_could_split_the_head_is_refused(value):
    with pytest.raises(BadHead, match="X-Evil"):
        passed_on((b"X-Evil", value))


@pytest.mark.parametrize(
    "target, host, expected",
    [
        ("/a%7Eb/%2F..?x=%7E&y=a+b", "h", "/a%7Eb/%2F..?x=%7E&y=a+b"),
        ("http://h/y?z", "h", "/y?z"),
        ("http://H:80/y", "h:80", "/y"),
        ("http://h", "h", "/"),
        ("http://h?q", "h", "/?q"),
        ("/caf\udcc3\udca9", "h", "/caf%C3%A9"),
        ("//h/x", "h", "//h/x"),
    ],
)
def test_a_target_is_brought_into_origin_form_and_otherwise_left_alone(target, host, expected):
    assert origin_form(target, host) == expected


@pytest.mark.parametrize("target", ["*", "h:80", "http://other/y", "/x#y", "ftp://h/x"])
def test_a_target_without_a_path_here_is_refused(target):
    with pytest.raises(BadHead):
        origin_form(target, "h")


@given(st.text())
def test_an_id_that_is_passed_on_can_stand_in_a_header(given_id):
    passed = RequestIds().of(given_id)
    assert passed.isascii() and passed.isprintable() and 0 < len(passed) <= 128
    assert passed == given_id or len(passed) == 16


@pytest.mark.parametrize(
    "prefix, covered, not_covered",
    [
        ("/", ["/", "/x", "//"], []),
        ("/v1", ["/v1", "/v1/chat"], ["/v10", "/", "/v"]),
        ("/v1/", ["/v1", "/v1/chat"], ["/v10"]),
    ],
)
def test_a_prefix_covers_what_lies_below_it(prefix, covered, not_covered):
    route = RouteOptions(prefix=prefix)
    assert [path for path in covered + not_covered if route.covers(path)] == covered


@pytest.mark.parametrize(
    "reason, status, retry",
    [
        (DropReason.QUEUE_FULL, 429, "3"),
        (DropReason.QUEUE_BYTES_FULL, 429, "3"),
        (DropReason.QUEUE_SECONDS_FULL, 429, "3"),
        (DropReason.NO_CAPACITY, 503, "3"),
        (DropReason.NO_REPLICA_IN_TIME, 503, "3"),
        (DropReason.PREDICTED_LATE, 503, "3"),
        (DropReason.RETRIES_SPENT, 503, "3"),
        (DropReason.CLOSING, 503, "1"),
        (DropReason.DEADLINE_PASSED, 504, None),
    ],
)
def test_e6_each_reason_has_its_status_and_says_when_to_come_back(reason, status, retry):
    response = answer(dropped(reason, expected_wait=2.1, waited=60.0), "/v1/x")
    assert response.status == status
    assert response.headers.get("Retry-After") == retry
    assert response.headers["X-Request-Executed"] == "no"


def test_errors_speak_the_dialect_of_their_route():
    refusal = Refusal(502, "upstream_reset", "It broke.", "maybe", proxy_reason="reset")
    bodies = {
        path: answer(refusal, path).body for path in ("/v1/chat/completions", "/v2/models/m/infer", "/x")
    }
    assert bodies == {
        "/v1/chat/completions": b'{"error":{"message":"It broke.","type":"server_error","param":null,'
        b'"code":"upstream_reset"}}',
        "/v2/models/m/infer": b'{"error":"It broke."}',
        "/x": b'{"type":"about:blank","title":"Bad Gateway","status":502,"detail":"It broke.",'
        b'"code":"upstream_reset"}',
    }
    assert answer(refusal, "/x").content_type == "application/problem+json"
    assert answer(refusal, "/x").headers["X-Proxy-Reason"] == "reset"


def test_s11_an_error_event_is_one_event_of_valid_json():
    event = error_event(Refusal(502, "upstream_truncated", 'It said "no"\nand left.'))
    assert event == (
        b'data: {"error":{"message":"It said \\"no\\"\\nand left.","type":"server_error","param":null,'
        b'"code":"upstream_truncated"}}\n\n'
    )


@pytest.mark.parametrize(
    "impossible", [{"port": 70000}, {"head_timeout": 0}, {"body_bytes_max": -1}, {"read_buffer_bytes": 1}]
)
def test_an_impossible_option_is_refused_by_name(impossible):
    with pytest.raises(ValueError, match=next(iter(impossible))):
        ProxyOptions(**impossible)


@pytest.mark.parametrize("impossible", [{"prefix": "v1"}, {"wait_timeout": 0}, {"idle_timeout": -1}])
def test_an_impossible_route_option_is_refused_by_name(impossible):
    with pytest.raises(ValueError, match=next(iter(impossible))):
        RouteOptions(**impossible)
