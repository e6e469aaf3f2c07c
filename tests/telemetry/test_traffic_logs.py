"""Logs of nginx, Envoy, Istio, HAProxy and Traefik are read as these programs write them."""

import numpy as np
import pytest

from autoscaler.telemetry.traffic import read_traffic
from tests.telemetry.traffic_examples import ENVOY, HAPROXY, ISTIO, written

COMBINED = '192.0.2.7 - - [13/Jul/2025:09:30:00 +0200] "POST {path} HTTP/1.1" 200 512 "-" "curl/8.5"'


# --- nginx, Traefik


def test_nginx_default_format_with_a_forwarded_address_at_the_end_has_no_duration(tmp_path):
    line = COMBINED.format(path="/v1/completions") + ' "10.0.0.1"'
    traffic = read_traffic(written(tmp_path / "n.log", line, line))
    assert traffic.unusable == 0
    assert np.isnan(traffic.demand.service_times).all()


def test_ingress_nginx_has_the_duration_in_the_middle_and_an_id_at_the_end(tmp_path):
    line = (
        COMBINED.format(path="/")
        + " 1024 2.500 [default-llm-80] [] 10.1.0.9:8000 1500 2.498 200 00112233445566778899001122334455"
    )
    traffic = read_traffic(written(tmp_path / "i.log", line))
    assert traffic.demand.service_times.tolist() == [2.5]
    assert traffic.demand.start == 1752391800.0 - 2.5


def test_traefik_says_its_unit(tmp_path):
    line = COMBINED.format(path="/") + ' 17 "llm@docker" "http://10.0.0.9:8000" 2500ms'
    assert read_traffic(written(tmp_path / "t.log", line)).demand.service_times.tolist() == [2.5]


@pytest.mark.parametrize(
    "path, model",
    [
        ("/v1/models/resnet50:predict", "resnet50"),
        ("/v2/models/llama-3.1/infer", "llama-3.1"),
        ("/v2/models/bert/versions/3/infer", "bert"),
        ("/openai/deployments/gpt-4o/chat/completions?api-version=1", "gpt-4o"),
    ],
)
def test_the_model_is_read_from_the_path(tmp_path, path, model):
    assert read_traffic(written(tmp_path / "n.log", COMBINED.format(path=path))).models == {model: 1}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/v1/models/"])
def test_a_path_without_a_model_names_none(tmp_path, path):
    assert read_traffic(written(tmp_path / "n.log", COMBINED.format(path=path))).models == {}


@pytest.mark.parametrize("path", ["/healthz", "/metrics?x=1", "/v2/health/ready", "/v2/models/bert/ready"])
def test_probes_are_no_demand(tmp_path, path):
    lines = [COMBINED.format(path=path), COMBINED.format(path="/v2/models/bert/infer")]
    traffic = read_traffic(written(tmp_path / "n.log", *lines))
    assert len(traffic.demand) == 1
    assert str(traffic.faults[0]).startswith(
        "1 line could not be used: a probe of health or metrics, which is no demand; the first is line 1: 192"
    )


# --- Envoy, Istio


def test_envoys_own_example(tmp_path):
    traffic = read_traffic(written(tmp_path / "e.log", ENVOY))
    assert traffic.form == "Envoy access log"
    assert traffic.demand.service_times.tolist() == [0.226]
    assert traffic.demand.start == 1460751420.31  # date -d 2016-04-15T20:17:00.310Z +%s.%3N
    assert traffic.zone == "UTC"


def test_istios_lines_have_more_fields_and_count_from_the_arrival(tmp_path):
    lines = [ISTIO.format(status=200, flags="-", duration=1500), "2025 info xds connected"]
    traffic = read_traffic(written(tmp_path / "i.log", *lines))
    assert traffic.demand.service_times.tolist() == [1.5]
    assert [fault.reason for fault in traffic.faults] == ["not in the default format of Envoy or Istio"]


@pytest.mark.parametrize("status, flags", [(0, "DC"), (503, "UO"), (429, "RL")])
def test_a_request_that_envoy_could_not_serve_is_demand_without_a_service_time(tmp_path, status, flags):
    line = ISTIO.format(status=status, flags=flags, duration=1500)
    demand = read_traffic(written(tmp_path / "i.log", line)).demand
    assert len(demand) == 1
    assert np.isnan(demand.service_times).all()


def test_envoys_json_counts_milliseconds_although_its_key_does_not_say_so(tmp_path):
    line = (
        '{"start_time": "2022-10-23T22:15:39.663Z", "duration": %d, "response_code": 200, '
        '"response_flags": "-", "upstream_service_time": "0"}'
    )
    probe = (line % 2).replace("}", ', "path": "/healthz"}')
    traffic = read_traffic(written(tmp_path / "e.json", line % 1500, line % 2, probe))
    assert traffic.unusable == 1
    assert traffic.demand.service_times.tolist() == [1.5, 0.002]


# --- HAProxy


def test_haproxys_service_begins_where_its_queue_ends(tmp_path):
    # 10 ms until the request was there, 500 ms in the queue, 609 ms in all.
    line = HAPROXY.format(timers="10/500/30/69/609", status=200)
    traffic = read_traffic(written(tmp_path / "h.log", line), zone="Europe/Paris")
    assert traffic.form == "HAProxy log"
    assert traffic.demand.service_times.tolist() == pytest.approx([0.099])
    assert traffic.demand.start == pytest.approx(1233918854.665)  # 2009-02-06 12:14:14.655 +0100, and 10 ms


@pytest.mark.parametrize(
    "timers, status",
    [
        ("0/613/-1/-1/820", 503),
        ("-1/-1/-1/-1/9000", 408),
        ("10/0/30/69/+109", 200),
        ("0/0/0/-1/-1", -1),
    ],
)
def test_what_haproxy_could_not_measure_is_demand_without_a_service_time(tmp_path, timers, status):
    traffic = read_traffic(written(tmp_path / "h.log", HAPROXY.format(timers=timers, status=status)))
    assert (len(traffic.demand), traffic.unusable) == (1, 0)
    assert np.isnan(traffic.demand.service_times).all()


def test_haproxys_time_has_no_zone_and_that_is_said(tmp_path):
    path = written(tmp_path / "h.log", HAPROXY.format(timers="1/0/1/1/3", status=200))
    assert "times name no zone: they are taken as UTC" in read_traffic(path).notes
    told = read_traffic(path, zone="America/New_York")
    assert told.demand.start - read_traffic(path).demand.start == 5 * 3600
    assert (told.zone, told.demand.utc_offset, told.notes) == ("America/New_York", -5 * 3600, ())


def test_haproxys_common_format_is_not_taken_for_apaches(tmp_path):
    # option httplog clf; what stands after the timers would look like microseconds.
    line = (
        'haproxy[12]: 10.0.0.1 - - [13/Jul/2025:09:30:00 +0000] "POST / HTTP/1.1" 200 512 "" "" 51812 655 '
        '"in" "llm" "srv1" 1 20 1 1400 1521 ---- 1 1 1 1 0 0 0 "" ""'
    )
    traffic = read_traffic(written(tmp_path / "h.log", line))
    assert traffic.form == "HAProxy log"
    assert traffic.demand.service_times.tolist() == [1.5]
    assert traffic.demand.start == pytest.approx(1752399000.656)


def test_lines_of_haproxy_that_are_no_requests_are_counted(tmp_path):
    lines = [
        HAPROXY.format(timers="1/0/1/1/3", status=200),
        "Dec  3 18:27:14 localhost haproxy[6103]: 127.0.0.1:56059 [03/Dec/2012:17:35:10.380] frt/f1: "
        "Connection error during SSL handshake",
    ]
    traffic = read_traffic(written(tmp_path / "h.log", *lines))
    assert [(fault.reason, fault.count) for fault in traffic.faults] == [
        ("not in HAProxy's format for HTTP", 1)
    ]
