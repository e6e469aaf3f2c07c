"""Tables and JSON of single requests: names of fields, units, models, ends, copies, silences."""

import json
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.errors import UsageError
from autoscaler.proxy.access_log import AccessLine
from autoscaler.telemetry.traffic import Requests, read_traffic
from autoscaler.telemetry.traffic.copies import copies
from tests.telemetry.traffic_examples import apache, written

HEADER = "timestamp,duration_s"
START = 1752399000  # 2025-07-13 09:30 UTC


# --- names and units


@pytest.mark.parametrize(
    "column, cell",
    [
        ("duration", "1.5"),
        ("latency_ms", "1500"),
        ("latencyMs", "1500"),
        ("Duration (ms)", "1500"),
        ("responseTime_us", "1500000"),
        ("elapsed.ns", "1500000000"),
        ("took", "1500ms"),
        ("service_time_seconds", "1.5"),
        ("Processing Time [µs]", "1500000"),
    ],
)
def test_a_duration_is_known_by_the_name_of_its_column_and_the_unit_in_it(tmp_path, column, cell):
    path = written(tmp_path / "r.csv", f"timestamp,{column}", f"{START},{cell}")
    assert read_traffic(path).demand.service_times.tolist() == pytest.approx([1.5])


@pytest.mark.parametrize(
    "column, cell",
    [
        ("timestamp", "2025-07-13T09:30:00.5Z"),
        ("timestamp", "2025-07-13 09:30:00.5"),
        ("@timestamp", "2025-07-13T11:30:00.500000000+02:00"),
        ("Start Time", "2025-07-13 11:30:00.5 +0200"),
        ("time", '"2025-07-13 09:30:00,5"'),
        ("time", "2025-07-13 09:30:00.5 UTC"),
        ("ts", "1752399000.5"),
        ("arrival_ms", "1752399000500"),
        ("startTimeNs", "1752399000500000000"),
        ("created_at", "1752399000500000"),
        ("time_local", "13/Jul/2025:09:30:00.5 +0000"),
    ],
)
def test_a_time_is_read_in_whatever_form(tmp_path, column, cell):
    assert read_traffic(written(tmp_path / "r.csv", f"{column},n", f"{cell},1")).demand.start == START + 0.5


def test_a_unit_in_the_name_wins_over_the_one_that_is_said(tmp_path):
    path = written(tmp_path / "r.csv", "timestamp,latency_ms", f"{START},1500")
    assert read_traffic(path, duration_unit="s").demand.service_times.tolist() == [1.5]
    path = written(tmp_path / "r.csv", "timestamp,latency", f"{START},1500")
    assert read_traffic(path, duration_unit="ms").demand.service_times.tolist() == [1.5]


def test_tokens_and_model_come_along(tmp_path):
    # The columns of a public trace of an API (BurstGPT).
    path = written(
        tmp_path / "r.csv",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
        "5,ChatGPT,472,18,490,Conversation log",
        "45,GPT-4,1087,230,1317,API log",
        "118,GPT-4,417,276,693,API log",
    )
    traffic = read_traffic(path)
    assert traffic.models == {"GPT-4": 2, "ChatGPT": 1}
    assert traffic.demand.tokens_in.tolist() == [472, 1087, 417]
    assert traffic.tokens_per_request() == (pytest.approx(658.67, abs=0.01), pytest.approx(174.67, abs=0.01))
    assert (traffic.zone, traffic.notes) == ("", ("2 models are taken together: GPT-4 (2), ChatGPT (1)",))


def test_one_model_of_several_is_taken(tmp_path):
    rows = [f"{START + place},{name}" for place, name in enumerate(["a", "b", "a", "", "a"])]
    traffic = read_traffic(written(tmp_path / "r.csv", "timestamp,model", *rows), only_model="a")
    assert traffic.demand.arrivals.tolist() == [0, 2, 4]
    assert traffic.models == {"a": 3, "b": 1}
    assert traffic.notes == ("2 requests of other models, or of none, are left out",)


@pytest.mark.parametrize("column, complaint", [("model", "there is b (1)"), ("tenant", "it names no model")])
def test_a_model_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path, column, complaint):
    path = written(tmp_path / "r.csv", f"timestamp,{column}", f"{START},b")
    with pytest.raises(UsageError) as caught:
        read_traffic(path, only_model="a")
    assert f"r.csv: has no request of the model a; {complaint}" in str(caught.value)


def test_start_and_end_make_a_duration(tmp_path):
    path = written(
        tmp_path / "r.csv",
        "started_at,finished_at",
        "2025-07-13T09:30:00Z,2025-07-13T09:30:02.5Z",
        "2025-07-13T09:30:01Z,",
        "2025-07-13T09:30:05Z,2025-07-13T09:30:04Z",
    )
    traffic = read_traffic(path)
    assert traffic.demand.service_times.tolist() == pytest.approx([2.5, np.nan], nan_ok=True)
    assert [fault.reason for fault in traffic.faults] == ["it ends before it begins"]


@pytest.mark.parametrize("names, arrived", [("msec,request_time", 0), ("end_time,duration_s", 0)])
def test_times_of_the_end_are_carried_back_to_the_arrival(tmp_path, names, arrived):
    traffic = read_traffic(written(tmp_path / "r.csv", names, f"{START + 2.5},2.5"))
    assert traffic.demand.start == START + arrived
    assert "those of the end" in traffic.notes[-1]


def test_a_start_is_the_arrival_whatever_the_duration_is_called(tmp_path):
    traffic = read_traffic(written(tmp_path / "r.csv", "start_time,request_time", f"{START},2.5"))
    assert traffic.demand.start == START


def test_a_cell_in_quotes_may_hold_line_breaks_and_delimiters(tmp_path):
    path = written(
        tmp_path / "r.csv",
        "timestamp,prompt,duration_s",
        f'{START},"Say ""hi"",',
        'then go.",1.5',
        f"{START + 1},short,2.5",
        f'{START + 2},"never closed,3.5',
    )
    traffic = read_traffic(path)
    assert traffic.demand.service_times.tolist() == [1.5, 2.5]
    assert [(fault.reason, fault.examples[0][0]) for fault in traffic.faults] == [
        ("a quote is not closed", 5)
    ]


def test_words_of_a_status_are_no_failure_and_numbers_from_400_on_are(tmp_path):
    rows = [f"{START + place},1.0,{status}" for place, status in enumerate(["ok", 200, 399, 400, 499, 0, ""])]
    demand = read_traffic(written(tmp_path / "r.csv", f"{HEADER},status", *rows)).demand
    assert np.isfinite(demand.service_times).tolist() == [True, True, True, False, False, False, True]


# --- JSON


def test_tokens_inside_usage_are_those_of_the_answer(tmp_path):
    line = (
        '{"id": "chatcmpl-%d", "object": "chat.completion", "created": %d, "model": "gpt-4o", '
        '"usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29}}'
    )
    traffic = read_traffic(written(tmp_path / "answers.jsonl", line % (1, START), line % (2, START + 1)))
    assert (traffic.models, traffic.tokens_per_request()) == ({"gpt-4o": 2}, (19.0, 10.0))


def test_this_programs_own_log_tells_waiting_from_service(tmp_path):
    line = AccessLine(
        time=START + 10.0,
        id="r1",
        method="POST",
        path="/v1/chat/completions",
        status=200,
        code="ok",
        pool="chat",
        priority_class="default",
        tenant="t",
        replica="chat-1",
        queue_seconds=3.0,
        service_seconds=2.0,
        total_seconds=5.5,
        sent_bytes=100,
    )
    failed = replace(line, time=START + 11.0, status=499, service_seconds=0.0)
    lines = [json.dumps(asdict(line)), json.dumps({**asdict(failed), "left_out": 7})]
    traffic = read_traffic(written(tmp_path / "access.log", *lines))
    assert traffic.demand.start == START + 4.5
    assert traffic.demand.service_times.tolist() == pytest.approx([2.0, np.nan], nan_ok=True)
    assert traffic.models == {"chat": 2}
    assert traffic.notes[-1] == ("7 requests were left out of the log when it was written")


RECORDS = [{"ts": START, "latency_ms": 1500}, {"ts": START + 1, "latency_ms": 500}, {"ts": "?"}]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RECORDS),
        json.dumps(RECORDS, indent=2),
        json.dumps({"count": 3, "requests": RECORDS}),
        "\n".join(json.dumps(record, indent=2) for record in RECORDS),
    ],
)
def test_a_document_of_requests_is_read_like_its_lines(tmp_path, text):
    traffic = read_traffic(written(tmp_path / "r.json", text))
    assert traffic.demand.service_times.tolist() == [1.5, 0.5]
    assert [(fault.reason, fault.examples[0][0]) for fault in traffic.faults] == [
        ("the time cannot be read", 3)
    ]


def test_lines_of_a_trace_that_counts_milliseconds_from_its_start(tmp_path):
    # The form of the Mooncake traces.
    line = '{"timestamp": %d, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}'
    traffic = read_traffic(written(tmp_path / "m.jsonl", line % 0, line % 27482))
    assert traffic.demand.arrivals.tolist() == [0.0, 27.482]
    assert traffic.tokens_per_request() == (6758, 500)


@pytest.mark.parametrize("text", ['{"a": 1}', "[]", "{}", "[1, 2]", '{"ts": ', "{'ts': 1}"])
def test_json_without_requests_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match=r"x.json: is (JSON, but neither|no JSON that can be read)"):
        read_traffic(written(tmp_path / "x.json", text))


def test_a_containers_log_is_told_from_requests(tmp_path):
    path = written(
        tmp_path / "c.json", '{"log": "hi\\n", "stream": "stdout", "time": "2025-07-13T09:30:00Z"}'
    )
    with pytest.raises(UsageError, match=r"log of a container .*jq -rj .log FILE"):
        read_traffic(path)


# --- what only all lines together tell


def test_lines_need_no_order(tmp_path):
    rows = [f"{START + second},{second + 1}" for second in (5, 0, 9, 3)]
    demand = read_traffic(written(tmp_path / "r.csv", HEADER, *rows)).demand
    assert demand.arrivals.tolist() == [0, 3, 5, 9]
    assert demand.service_times.tolist() == [1, 4, 6, 10]


def test_a_log_that_was_joined_twice_counts_once(tmp_path):
    rows = [f"{START + 30 * place},1.5" for place in range(100)]
    traffic = read_traffic(written(tmp_path / "r.csv", HEADER, *rows, *rows[40:60], *rows))
    assert len(traffic.demand) == 100
    assert str(traffic.faults[0]) == (
        "120 lines could not be used: a copy of an earlier line; the first is line 102: as line 42"
    )


def test_equal_lines_of_one_second_are_requests(tmp_path):
    traffic = read_traffic(written(tmp_path / "a.log", *apache(5_000_000, 1_000), *apache(5_000_000)))
    assert (len(traffic.demand), traffic.faults) == (3, ())


def test_in_a_file_without_order_nothing_is_a_copy():
    # By user, and not by time: one second of two users looks as if it had been written twice.
    times = np.tile(np.arange(0.0, 6000.0, 100.0), 30)
    assert [len(part) for part in copies(np.arange(len(times)) % 60, times)] == [0, 0]


@given(st.lists(st.integers(1, 5), min_size=200, max_size=300), st.integers(0, 100), st.integers(61, 99))
def test_what_is_appended_again_is_found_whole(repeated, begin, length):
    """Equal lines next to each other stay; all of a part that is written again goes."""
    marks = np.repeat(np.arange(len(repeated)), repeated)
    times = 2.0 * marks.astype(float)
    again = np.flatnonzero((marks >= begin) & (marks < begin + length))
    copied, of = copies(np.concatenate([marks, marks[again]]), np.concatenate([times, times[again]]))
    # Of the last minute of the file the end may be so close that a copy cannot be told from a repetition.
    near = times[again] > times[-1] - 400.0
    assert set((len(marks) + np.flatnonzero(~near)).tolist()) <= set(copied.tolist())
    assert (copied >= len(marks)).all()
    assert (marks[of] == marks[again[copied - len(marks)]]).all()


@pytest.mark.parametrize("odd", ["1970-01-01T00:00:00Z", "2262-04-11T23:47:16Z", "9223372036854775807", "0"])
def test_a_clock_that_was_not_set_does_not_stretch_the_log_over_centuries(tmp_path, odd):
    rows = [f"{START + second},1.0" for second in range(9)]
    traffic = read_traffic(written(tmp_path / "r.csv", HEADER, *rows, f"{odd},1.0"))
    assert traffic.demand.arrivals.tolist() == list(range(9))
    assert [(fault.reason, fault.examples[0][0]) for fault in traffic.faults] == [
        ("the time is years from the others", 11)
    ]


def test_of_two_times_that_are_centuries_apart_one_is_kept(tmp_path):
    traffic = read_traffic(written(tmp_path / "r.csv", HEADER, "0,1.0", f"{START},1.0"))
    assert (len(traffic.demand), traffic.unusable) == (1, 1)


def test_a_log_of_the_future_is_read_and_said_to_be_one(tmp_path):
    rows = [f"{time.time() + 40 * 86400 + second:.0f},1.0" for second in range(3)]
    traffic = read_traffic(written(tmp_path / "r.csv", HEADER, *rows))
    assert len(traffic.demand) == 3
    assert traffic.notes[-1].endswith("yet to come: is its clock right?")


def test_a_long_silence_amid_traffic_is_pointed_at(tmp_path):
    seconds = [*range(0, 3600, 5), *range(7200, 10800, 5)]
    traffic = read_traffic(written(tmp_path / "r.csv", "timestamp", *(f"{START + s}" for s in seconds)))
    assert traffic.notes == (
        "no request came for 3605s from 2025-07-13 10:29:55 UTC on, though many did as long before and after "
        "(1 such silence): if the file has a hole there, it counts as zero",
    )


def test_sparse_and_even_traffic_has_no_silence(tmp_path):
    sparse = written(tmp_path / "r.csv", "timestamp", *(f"{START + 7200 * hour}" for hour in range(300)))
    dense = written(tmp_path / "d.csv", "timestamp", *(f"{START + place // 200}" for place in range(4000)))
    assert read_traffic(sparse).notes == read_traffic(dense).notes == ()


# --- Requests


def requests(services: list[float]) -> Requests:
    n = len(services)
    untold = np.full(n, np.nan)
    return Requests(np.arange(n, dtype=float), np.array(services), untold, untold)


def test_service_times_that_were_not_told_are_drawn_from_those_that_were():
    drawn = requests([1.0, np.nan, 3.0, np.nan, np.nan]).with_services_drawn(np.random.default_rng(7))
    assert drawn.service_times[[0, 2]].tolist() == [1.0, 3.0]
    assert set(drawn.service_times.tolist()) <= {1.0, 3.0}
    again = requests([1.0, np.nan, 3.0, np.nan, np.nan]).with_services_drawn(np.random.default_rng(7))
    assert again.service_times.tolist() == drawn.service_times.tolist()


def test_nothing_can_be_drawn_from_nothing():
    with pytest.raises(ValueError, match="at least one service time"):
        requests([np.nan]).with_services_drawn(np.random.default_rng(0))


def test_counting_in_steps_that_are_far_too_short_is_refused(tmp_path):
    path = written(tmp_path / "r.csv", "arrival_s", "0", "900000")
    with pytest.raises(UsageError, match=r"span 900,000 s; in steps of 0.001 s that is more than"):
        read_traffic(path).counted(0.001)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000),
            st.one_of(st.none(), st.floats(0, 1e4, allow_nan=False)),
            st.integers(0, 10**6),
        ),
        min_size=1,
        max_size=30,
        unique_by=lambda row: row[0],
    )
)
def test_what_is_written_is_read(tmp_path_factory, rows):
    """CSV and JSON lines of the same requests are the same, and as they were."""
    folder = tmp_path_factory.mktemp("round")
    cells = [f"{START + at!r},{'' if took is None else repr(took)},{tokens}" for at, took, tokens in rows]
    lines = [json.dumps({"ts": START + at, "duration_s": took, "tokens_in": n}) for at, took, n in rows]
    table = read_traffic(written(folder / "r.csv", f"{HEADER},input_tokens", *cells)).demand
    json_lines = read_traffic(written(folder / "r.jsonl", *lines)).demand
    expected = sorted((START + at, np.nan if took is None else took, n) for at, took, n in rows)
    for demand in (table, json_lines):
        told = np.column_stack([demand.start + demand.arrivals, demand.service_times, demand.tokens_in])
        np.testing.assert_allclose(told, np.array(expected, dtype=float), rtol=1e-12, atol=1e-6)
