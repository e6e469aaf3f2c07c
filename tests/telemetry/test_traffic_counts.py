"""Counts of intervals: order, repetitions, labels, lengths; OpenAI's usage; saved answers of Prometheus."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.errors import UsageError
from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.traffic import Traffic, read_traffic
from tests.telemetry.traffic_examples import written

START = 1752399000  # 2025-07-13 09:30 UTC


def counts(path: Path, **options: object) -> list[float]:
    return read_traffic(path, **options).demand.values.tolist()


# --- tables of counts


def test_rows_need_no_order(tmp_path):
    assert counts(written(tmp_path / "s.csv", "start_s,requests", "120,3", "0,1", "60,2")) == [1, 2, 3]


def test_a_second_count_of_an_interval_is_left_out(tmp_path):
    traffic = read_traffic(
        written(tmp_path / "s.csv", "start_s,requests", "0,1", "60,2", "60,2", "60,5", "120,3")
    )
    assert traffic.demand.values.tolist() == [1, 2, 3]
    assert [(fault.reason, fault.examples) for fault in traffic.faults] == [
        ("a copy of an earlier line", ((4, "as line 3"),)),
        ("a second count of the same interval", ((5, "as line 3"),)),
    ]


def test_rows_with_labels_add_up(tmp_path):
    path = written(
        tmp_path / "s.csv", "start_s,model,requests", "0,a,1", "0,b,2", "60,a,3", "120,b,4", "120,b,4"
    )
    traffic = read_traffic(path)
    assert traffic.demand.values.tolist() == [3, 3, 4]
    assert traffic.models == {"b": 6 + 4, "a": 4}
    assert [fault.reason for fault in traffic.faults] == ["a copy of an earlier line"]


def test_one_model_of_a_table_had_nothing_where_only_others_had(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,model,requests", "0,a,10", "0,b,2", "60,a,30", "120,b,4")
    assert counts(path, only_model="b") == [2, 0, 4]
    assert counts(path, only_model="b", gaps=True) == [2, 0, 4]
    with pytest.raises(UsageError, match=r"has no requests of the model c; there is a \(40\), b \(6\)"):
        read_traffic(path, only_model="c")


def test_a_column_tells_how_long_an_interval_is(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,interval_s,requests", "0,60,5", "180,60,7")
    series = read_traffic(path).demand
    assert (series.values.tolist(), series.interval) == ([5, 0, 0, 7], 60)
    only = read_traffic(written(tmp_path / "o.csv", "start_s,interval_s,requests", "0,60,5")).demand
    assert (only.values.tolist(), only.interval) == ([5], 60)


def test_local_days_of_23_and_25_hours_are_days(tmp_path):
    # Clocks in Berlin went forward on 30 March 2025.
    rows = [f"2025-03-{day},{day}" for day in range(28, 32)]
    series = read_traffic(written(tmp_path / "s.csv", "date,requests", *rows), zone="Europe/Berlin").demand
    assert (series.values.tolist(), series.interval) == ([28, 29, 30, 31], 86_400)
    rows = [f"2025-10-{day},{day}" for day in range(25, 29)]
    series = read_traffic(written(tmp_path / "s.csv", "date,requests", *rows), zone="Europe/Berlin").demand
    assert (series.values.tolist(), series.interval) == ([25, 26, 27, 28], 86_400)


def test_the_hour_that_comes_twice_when_summer_time_ends_is_two(tmp_path):
    rows = [f"2025-10-26 {hour}:00,{count}" for count, hour in enumerate(["01", "02", "02", "03", "04"])]
    traffic = read_traffic(written(tmp_path / "s.csv", "time,requests", *rows), zone="Europe/Berlin")
    assert traffic.demand.values.tolist() == [0, 1, 2, 3, 4]
    assert traffic.demand.start == 1761433200  # TZ=Europe/Berlin date -d '2025-10-26 01:00' +%s


def test_json_lines_of_counts_are_no_requests(tmp_path):
    lines = [f'{{"ts": {START + 60 * minute}, "requests": {minute + 1}}}' for minute in range(3)]
    traffic = read_traffic(written(tmp_path / "s.jsonl", *lines, '{"ts": 1}'))
    assert (traffic.form, traffic.demand.values.tolist()) == ("JSON lines of counts", [1, 2, 3])
    assert [fault.reason for fault in traffic.faults] == ["no time or no count"]


def test_tokens_of_an_interval_are_told_beside_its_requests(tmp_path):
    path = written(
        tmp_path / "s.csv",
        "start_s,requests,input_tokens,output_tokens",
        "0,2,100,10",
        "60,0,0,0",
        "180,3,200,20",
    )
    traffic = read_traffic(path)
    assert traffic.tokens_in.tolist() == pytest.approx([100, 0, np.nan, 200], nan_ok=True)
    assert traffic.tokens_per_request() == (60, 6)


def test_a_time_far_off_is_no_reason_to_fill_the_memory(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,requests", "0,1", "1,1", "99000000000,1")
    with pytest.raises(UsageError, match=r"spans 9.9e\+10 s in steps of 1 s, more than"):
        read_traffic(path)


# --- gaps


def test_gaps_are_bridged_by_a_line_and_said_to_be(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,requests", "0,4", "60,", "120,", "180,10", "240,")
    series, note = read_traffic(path, gaps=True).bridged(interval=60.0)
    assert series.values.tolist() == [4, 6, 8, 10, 10]
    assert note == (
        "3 of 5 intervals are not known, 2m at a stretch at most; they are taken to lie on a line between "
        "their neighbours"
    )


def test_what_has_no_gap_needs_no_bridge(tmp_path):
    traffic = read_traffic(written(tmp_path / "s.csv", "start_s,requests", "0,4", "60,5"))
    assert traffic.bridged(interval=60.0)[1] == ""


def test_a_gap_without_a_line_to_blame_says_when_it_was(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,requests", "0,4", "60,", "120,5")
    with pytest.raises(UsageError, match=r"1 of 3 intervals are not known, the first 1m after its start"):
        read_traffic(path, gaps=True).known_counts(interval=60.0)


# --- OpenAI


def bucket(minute: int, *results: dict[str, object]) -> dict[str, object]:
    start = START + 60 * minute
    return {"object": "bucket", "start_time": start, "end_time": start + 60, "results": list(results)}


def result(requests: int, tokens_in: int, tokens_out: int, model: str | None = None) -> dict[str, object]:
    return {
        "object": "organization.usage.completions.result",
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "input_cached_tokens": 0,
        "num_model_requests": requests,
        "project_id": None,
        "api_key_id": None,
        "model": model,
        "batch": None,
    }


def page(*buckets: dict[str, object], more: bool = False) -> str:
    return json.dumps({"object": "page", "data": list(buckets), "has_more": more, "next_page": None})


BUCKETS = (
    bucket(0, result(5, 1000, 500, "gpt-4o"), result(1, 10, 5, "o3")),
    bucket(1),
    bucket(2, result(3, 600, 300, "gpt-4o")),
)


@pytest.mark.parametrize(
    "lines",
    [
        [page(*BUCKETS)],
        [page(*BUCKETS[:2], more=True), page(BUCKETS[2])],
        [json.dumps([json.loads(page(*BUCKETS))], indent=2)],
        [json.dumps(each) for each in BUCKETS],
    ],
)
def test_buckets_of_openai_have_requests_and_tokens_and_none_is_zero(tmp_path, lines):
    traffic = read_traffic(written(tmp_path / "usage.json", *lines))
    assert traffic.form == "OpenAI usage"
    assert (traffic.demand.values.tolist(), traffic.demand.interval) == ([6, 0, 3], 60)
    assert (traffic.demand.start, traffic.zone) == (START, "UTC")
    assert traffic.tokens_in.tolist() == [1010, 0, 600]
    assert traffic.tokens_out.tolist() == [505, 0, 300]
    assert traffic.models == {"gpt-4o": 8, "o3": 1}
    assert not any("there is more" in note for note in traffic.notes)


def test_one_model_of_openais_usage(tmp_path):
    traffic = read_traffic(written(tmp_path / "usage.json", page(*BUCKETS)), only_model="o3")
    assert traffic.demand.values.tolist() == [1, 0, 0]
    assert traffic.tokens_per_request() == (10, 5)


def test_a_page_that_is_not_the_last_says_so(tmp_path):
    traffic = read_traffic(written(tmp_path / "usage.json", page(*BUCKETS, more=True)))
    assert traffic.notes[-1].startswith("the last page says that there is more")


def test_costs_are_no_requests(tmp_path):
    cost = {"object": "organization.costs.result", "amount": {"value": 0.06, "currency": "usd"}}
    with pytest.raises(
        UsageError, match=r"no row that can be used; 1 line could not be used: a result without num_mo"
    ):
        read_traffic(written(tmp_path / "costs.json", page(bucket(0, cost))))


def test_the_table_that_openai_exports_lists_empty_buckets(tmp_path):
    path = written(
        tmp_path / "completions_usage.csv",
        "start_time,end_time,start_time_iso,end_time_iso,project_id,num_model_requests,api_key_id,model,"
        "input_tokens,output_tokens,input_cached_tokens",
        "1761523800,1761523860,2025-10-27T00:10:00+00:00,2025-10-27T00:11:00+00:00,p,3.0,k1,gpt-4o,4212,1673,0",
        "1761523800,1761523860,2025-10-27T00:10:00+00:00,2025-10-27T00:11:00+00:00,p,3.0,k2,gpt-4o,5904,1419,0",
        "1761523860,1761523920,2025-10-27T00:11:00+00:00,2025-10-27T00:12:00+00:00,,,,,,,",
        "1761523920,1761523980,2025-10-27T00:12:00+00:00,2025-10-27T00:13:00+00:00",
        "1761523980,1761524040,2025-10-27T00:13:00+00:00,2025-10-27T00:14:00+00:00,p,1.0,k1,o3,10,5,0",
    )
    traffic = read_traffic(path, gaps=True)
    assert traffic.form == "OpenAI usage"
    assert (traffic.demand.values.tolist(), traffic.demand.interval) == ([6, 0, 0, 1], 60)
    assert traffic.tokens_in.tolist() == [10116, 0, 0, 10]
    assert (traffic.models, traffic.unusable) == ({"gpt-4o": 6, "o3": 1}, 0)


def test_the_older_usage_of_openai(tmp_path):
    record = {
        "aggregation_timestamp": START,
        "n_requests": 2,
        "operation": "completion",
        "snapshot_id": "gpt-4",
    }
    record |= {"n_context_tokens_total": 100, "n_generated_tokens_total": 10}
    later = {**record, "aggregation_timestamp": START + 600, "n_requests": 1}
    traffic = read_traffic(
        written(tmp_path / "u.json", json.dumps({"object": "list", "data": [record, later]}))
    )
    assert (traffic.demand.values.tolist(), traffic.demand.interval) == ([2, 0, 1], 300)
    assert traffic.models == {"gpt-4": 3}


def test_days_are_said_to_hide_what_happens_within(tmp_path):
    day = {"start_time": START, "end_time": START + 86_400, "results": [result(5, 1, 1)]}
    traffic = read_traffic(written(tmp_path / "u.json", json.dumps({"object": "page", "data": [day]})))
    assert traffic.demand.interval == 86_400
    assert traffic.notes == ("it counts by the day: what happens within one cannot be seen",)


# --- Prometheus


def answer(*series: tuple[dict[str, str], list[float | None]], step: int = 60) -> str:
    result = [
        {
            "metric": labels,
            "values": [[START + step * n, str(v)] for n, v in enumerate(values) if v is not None],
        }
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def prometheus(path: Path, *series: tuple[dict[str, str], list[float | None]], **options: object) -> Traffic:
    return read_traffic(written(path / "range.json", answer(*series)), **options)


def test_counters_of_several_processes_rise_by_what_came(tmp_path):
    traffic = prometheus(
        tmp_path,
        ({"__name__": "http_requests_total", "instance": "a"}, [10, 14, 2, 5]),  # it began anew in between
        ({"__name__": "http_requests_total", "instance": "b"}, [0, 1, 1, 3]),
    )
    assert traffic.form == "Prometheus answer"
    assert (traffic.demand.values.tolist(), traffic.demand.interval) == ([5, 2, 5], 60)
    assert (traffic.demand.start, traffic.lines) == (START, 8)
    assert traffic.notes == ("samples are taken as a counter (by its name), 2 series added up",)


def test_what_falls_as_well_as_it_rises_is_a_rate_unless_told_otherwise(tmp_path):
    values = [0.5, 1.5, 0.25, 2.0]
    assert prometheus(tmp_path, ({}, values)).demand.values.tolist() == [90, 15, 120]
    assert prometheus(tmp_path, ({}, values), kind=Kind.COUNT).demand.values.tolist() == [1.5, 0.25, 2.0]


def test_samples_are_joined_into_longer_intervals(tmp_path):
    traffic = prometheus(tmp_path, ({"__name__": "x_total"}, [0, 1, 2, 3, 4, 5, 6]), interval=180.0)
    assert (traffic.demand.values.tolist(), traffic.demand.interval) == ([3, 3], 180)
    with pytest.raises(
        UsageError, match=r"a point every 1m; ask for intervals of a multiple of that, not of 90s"
    ):
        prometheus(tmp_path, ({}, [1, 2, 3]), interval=90.0)


def test_a_time_in_which_nobody_counted_is_a_gap(tmp_path):
    values = [*range(0, 20, 2), *[None] * 20, *range(100, 110)]
    known = np.isfinite(prometheus(tmp_path, ({"__name__": "x_total"}, values)).demand.values)
    assert known[:9].all()
    assert not known[9:29].any()


@pytest.mark.parametrize(
    "text, complaint",
    [
        (
            '{"status": "error", "errorType": "bad_data", "error": "parse error"}',
            "error of Prometheus: parse err",
        ),
        ('{"status": "success", "data": {"resultType": "vector", "result": [{}]}}', "no samples over time"),
        ('{"status": "success", "data": {"resultType": "matrix", "result": []}}', "query_range"),
        (answer(({}, [1.0])), "one point in time"),
        (answer(({}, [1, -3, 2])), "negative"),
        (answer(({"__name__": "x_bucket"}, [1, 2, 3])), "counts a request in several buckets"),
        (answer(({}, [float("nan")] * 3)), "no sample that is a number"),
    ],
)
def test_what_is_no_range_of_counts_is_refused(tmp_path, text, complaint):
    with pytest.raises(UsageError, match=complaint):
        read_traffic(written(tmp_path / "p.json", text))


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40), st.sampled_from([1, 60, 300, 3600]))
def test_counts_are_the_same_in_whatever_form_they_are_saved(tmp_path_factory, numbers, step):
    """A table, lines of JSON, OpenAI's buckets and a counter of Prometheus tell one series."""
    folder = tmp_path_factory.mktemp("forms")
    starts = [START + step * place for place in range(len(numbers))]
    table = [f"{start},{step},{n}" for start, n in zip(starts, numbers, strict=True)]
    lines = [json.dumps({"timestamp": s, "requests": n}) for s, n in zip(starts, numbers, strict=True)]
    buckets = [
        {"start_time": start, "end_time": start + step, "results": [result(n, 0, 0)] if n else []}
        for start, n in zip(starts, numbers, strict=True)
    ]
    risen = np.concatenate([[0], np.cumsum(numbers)]).tolist()
    paths = [
        written(folder / "t.csv", "start_s,interval_s,requests", *table),
        written(folder / "t.jsonl", *lines),
        written(folder / "u.json", json.dumps({"data": buckets})),
        written(folder / "p.json", answer(({"__name__": "n_total"}, risen), step=step)),
    ]
    for path in paths:
        told = read_traffic(path)
        assert told.demand.interval == step, path
        assert told.known_counts(interval=1.0).values.tolist() == numbers, path
        if path.name != "t.csv":
            assert told.demand.start == START
