"""Traffic is read from what people have: access logs, JSON lines, tables; what cannot be used is counted."""

import math
from pathlib import Path

import numpy as np
import pytest

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import read_traffic
from tests.telemetry.traffic_examples import apache, written


def service_times(path: Path, **options: object) -> list[float]:
    return read_traffic(path, **options).demand.service_times.tolist()


# --- access logs


def test_microseconds_of_apache_are_known_by_their_size(tmp_path):
    traffic = read_traffic(written(tmp_path / "a.log", *apache(1_250_000, 900_000, 40_000)))
    assert traffic.form == "access log"
    assert traffic.demand.service_times.tolist() == pytest.approx([1.25, 0.9, 0.04])
    assert traffic.demand.arrivals.tolist() == [0.0, 1.0, 2.0]
    assert traffic.notes == ("durations are taken as microseconds (whole numbers, median 900,000)",)


def test_whole_seconds_of_apache_are_known_by_their_size(tmp_path):
    assert service_times(written(tmp_path / "a.log", *apache(2, 30, 999))) == [2.0, 30.0, 999.0]


def test_what_may_be_either_is_asked(tmp_path):
    path = written(tmp_path / "a.log", *apache(2, 30, 4000))
    with pytest.raises(UsageError, match=r"median 30, greatest 4,000.*--duration-unit s, ms, us or ns"):
        read_traffic(path)
    assert service_times(path, duration_unit="ms") == [0.002, 0.03, 4.0]


def test_nginx_writes_a_line_at_the_end_of_a_request_so_the_arrival_is_earlier(tmp_path):
    traffic = read_traffic(written(tmp_path / "n.log", *apache("0.250", "1.500")))
    # Ends at 0 s and 1 s; they arrived at -0.25 s and -0.5 s, so the second was first.
    assert traffic.demand.arrivals.tolist() == pytest.approx([0.0, 0.25])
    assert traffic.demand.service_times.tolist() == [1.5, 0.25]
    assert "as nginx writes them" in traffic.notes[1]


@pytest.mark.parametrize(
    "tail, seconds",
    [
        ("0.250", 0.25),
        ('"0.250"', 0.25),
        ('rt=0.250 uct="0.001" urt="0.249"', 0.25),
        ("request_time=0.250 -", 0.25),
        ("250ms", 0.25),
        ("0.260 0.250", 0.25),
    ],
)
def test_durations_are_found_where_people_put_them(tmp_path, tail, seconds):
    assert service_times(written(tmp_path / "a.log", *apache(tail))) == [seconds]


@pytest.mark.parametrize("tail", ["", "-", '"-"'])
def test_a_line_without_duration_is_demand_all_the_same(tmp_path, tail):
    traffic = read_traffic(written(tmp_path / "a.log", *apache(tail, tail)))
    assert (len(traffic.demand), traffic.unusable) == (2, 0)
    assert np.isnan(traffic.demand.service_times).all()


def test_a_number_inside_the_agent_is_no_duration(tmp_path):
    line = '10.0.0.1 - - [13/Jul/2025:09:30:00 +0000] "GET / HTTP/1.1" 200 5 "-" "client 8"'
    assert np.isnan(service_times(written(tmp_path / "a.log", line))).all()


def test_failed_requests_are_demand_and_say_nothing_of_the_service(tmp_path):
    lines = [*apache(2_000_000), *apache(1_000, 1_000, status=503)]
    traffic = read_traffic(written(tmp_path / "a.log", *lines))
    assert len(traffic.demand) == 3
    assert np.nansum(traffic.demand.service_times) == 2.0
    assert "2 failed requests" in traffic.notes[1]


def test_unusable_lines_are_counted_by_reason_with_the_first_of_each(tmp_path):
    lines = apache(*[1_000_000] * 4)
    broken = ["cut off", lines[0].replace("Jul", "Jux"), "cut off, too"]
    traffic = read_traffic(written(tmp_path / "a.log", *lines, "", *broken))
    assert (traffic.lines, traffic.unusable, len(traffic.demand)) == (7, 3, 4)
    assert [(fault.reason, fault.count) for fault in traffic.faults] == [
        ("not in the common or combined format", 2),
        ("the time cannot be read", 1),
    ]
    assert traffic.faults[0].examples == ((6, "cut off"), (8, "cut off, too"))


def test_the_clock_of_the_log_is_kept(tmp_path):
    demand = read_traffic(written(tmp_path / "a.log", *apache(1_000_000))).demand
    assert demand.start == 1752413400.0  # date -d '2025-07-13 09:30 -0400' +%s
    assert demand.utc_offset == -4 * 3600


def test_a_rotated_log_may_begin_in_the_middle_of_a_line(tmp_path):
    traffic = read_traffic(written(tmp_path / "a.log", 'tail of a line" 12', *apache(1_000_000)))
    assert (traffic.form, traffic.unusable) == ("access log", 1)


# --- JSON lines and tables of requests


def test_json_lines_are_read_by_the_names_of_their_keys(tmp_path):
    path = written(
        tmp_path / "r.jsonl",
        '{"ts": "2025-07-13T09:30:00.5Z", "latency_ms": 250, "prompt_tokens": 10, "completion_tokens": 5}',
        '{"ts": "2025-07-13T09:30:02.5Z", "latency_ms": 1500, "prompt_tokens": 20, "completion_tokens": 7}',
        '{"ts": "yesterday", "latency_ms": 1}',
        '{"other": 1}',
        "[1, 2]",
    )
    traffic = read_traffic(path)
    assert traffic.demand.arrivals.tolist() == [0.0, 2.0]
    assert traffic.demand.service_times.tolist() == [0.25, 1.5]
    assert traffic.demand.tokens_in.tolist() == [10.0, 20.0]
    assert traffic.demand.tokens_out.tolist() == [5.0, 7.0]
    assert {fault.reason for fault in traffic.faults} == {
        "the time cannot be read",
        "no time of arrival",
        "no JSON object",
    }


@pytest.mark.parametrize(
    "time, seconds",
    [("1752413400", 1752413400), ("1752413400500", 1752413400.5), ("1752413400500000", 1752413400.5)],
)
def test_calendar_times_may_count_in_smaller_units(tmp_path, time, seconds):
    path = written(tmp_path / "r.csv", "timestamp,duration_s", f"{time},1", f"{time},2")
    assert read_traffic(path).demand.start == seconds


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
def test_a_table_of_requests_is_sorted_by_arrival(tmp_path, name):
    path = written(tmp_path / name, "arrival_s,input_tokens,output_tokens", "5,7,8", "2,3,4")
    traffic = read_traffic(path)
    assert traffic.form == "CSV of requests"
    assert traffic.demand.arrivals.tolist() == [0.0, 3.0]
    assert traffic.demand.tokens_out.tolist() == [4.0, 8.0]


def test_two_bare_columns_are_arrival_and_duration(tmp_path):
    demand = read_traffic(written(tmp_path / "r.csv", "0.5,10.5", "2.5,12")).demand
    assert (demand.arrivals.tolist(), demand.service_times.tolist()) == ([0.0, 2.0], [10.5, 12.0])


def test_semicolons_and_quotes_are_read(tmp_path):
    path = written(tmp_path / "r.csv", "Start_Time;Duration", '"2025-07-13 09:30:00";1.5')
    assert service_times(path) == [1.5]


@pytest.mark.parametrize(
    "row, reason",
    [
        ("1", "too few columns"),
        ("1,-2.5", "the duration is negative"),
        ("1,nan", "the duration is no number"),
        ("soon,2", "the time cannot be read"),
    ],
)
def test_a_row_that_cannot_be_used_says_why(tmp_path, row, reason):
    traffic = read_traffic(written(tmp_path / "r.csv", "arrival,duration", "0,2.5", row))
    assert [fault.reason for fault in traffic.faults] == [reason]
    assert len(traffic.demand) == 1


# --- tables of counts


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz"])
def test_counts_are_read_and_absent_intervals_are_zero(tmp_path, name):
    path = written(tmp_path / name, "start_s,interval_s,requests", "0,60,5", "60,60,6", "180,60,7")
    series = read_traffic(path).known_counts(interval=1.0)
    assert (series.values.tolist(), series.interval) == ([5.0, 6.0, 0.0, 7.0], 60.0)


def test_an_interval_that_nobody_counted_is_not_zero(tmp_path):
    traffic = read_traffic(written(tmp_path / "s.csv", "start_s,requests", "0,1", "60,many", "120,3"))
    assert np.isnan(traffic.demand.values).tolist() == [False, True, False]
    assert [fault.reason for fault in traffic.faults] == ["the count is no number"]
    with pytest.raises(UsageError, match=r"s.csv:3: '60,many' tells no count, and 1 intervals are not known"):
        traffic.known_counts(interval=1.0)


def test_counts_without_times_need_the_length_of_an_interval(tmp_path):
    path = written(tmp_path / "s.csv", "requests", "3", "4")
    with pytest.raises(UsageError, match=r"counts and no times.*--interval 1s"):
        read_traffic(path)
    series = read_traffic(path, interval=5.0).demand
    assert (series.values.tolist(), series.interval) == ([3.0, 4.0], 5.0)


def test_requests_are_counted_in_whole_intervals(tmp_path):
    path = written(tmp_path / "r.csv", "arrival_s", "0", "0.5", "9.5", "21", "29")
    assert read_traffic(path).counted(10.0).values.tolist() == [3.0, 0.0]


@pytest.mark.parametrize(
    "lines, complaint",
    [
        (
            ["start_s,requests", "0,-1", "1,-2"],
            "no row that can be used; 2 lines could not be used: the count is not",
        ),
        (["start_s,requests", "0,1"], "at least 2"),
        (["start_s,requests", "0,1", "2,1", "5,1"], "even steps"),
        (["model,hardware,token_time", "llama,h100,3"], "starts with .*; give an access log"),
        (
            ["client,start_s,interval_s,rate", "0,0,600,2"],
            "starts with .*; give an access log",
        ),
        (
            ["arrival_s,duration", "soon,1"],
            "no line that can be used; 1 line could not be used: the time cannot be read",
        ),
        ([""], "is empty"),
    ],
)
def test_what_is_no_traffic_is_refused(tmp_path, lines, complaint):
    with pytest.raises(UsageError, match=complaint):
        read_traffic(written(tmp_path / "x.csv", *lines))


def test_a_file_that_cannot_be_read_is_a_clear_error(tmp_path):
    with pytest.raises(UsageError, match=r"none.csv: cannot be read"):
        read_traffic(tmp_path / "none.csv")
    cut = written(tmp_path / "cut.gz", *apache(*[1_000_000] * 50))
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(UsageError, match=r"cut.gz: cannot be read"):
        read_traffic(cut)


def test_progress_reaches_the_end(tmp_path):
    shares: list[float] = []
    lines = ["arrival_s", *(str(number) for number in range(200_000))]
    read_traffic(written(tmp_path / "r.csv", *lines), progress=shares.append)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert len(shares) > 2


@pytest.mark.parametrize("header", ["timestamp,value", "ds,y", "Date;Count", "time,hits"])
def test_counts_may_have_other_names_beside_a_time(tmp_path, header):
    comma = ";" if ";" in header else ","
    rows = (f"2025-07-13 09:{minute}{comma}{count}" for minute, count in (("30", 5), ("40", 7)))
    traffic = read_traffic(written(tmp_path / "s.csv", header, *rows))
    assert (traffic.form, traffic.demand.values.tolist()) == ("CSV of counts", [5.0, 7.0])
    assert (traffic.demand.interval, traffic.demand.start) == (600.0, 1752399000.0)


@pytest.mark.parametrize(
    "counts, absent", [((5, 0, 7), math.nan), ((500, 600, 700), math.nan), ((5, 1, 7), 0.0)]
)
def test_who_asks_for_gaps_gets_an_absent_interval_as_one_unless_it_must_mean_zero(tmp_path, counts, absent):
    rows = [f"{start},{count}" for start, count in zip((0, 60, 180), counts, strict=True)]
    path = written(tmp_path / "s.csv", "start_s,requests", *rows)
    assert read_traffic(path).demand.values[2] == 0.0
    assert read_traffic(path, gaps=True).demand.values[2] == pytest.approx(absent, nan_ok=True)


def test_to_who_asks_for_gaps_a_row_without_a_count_is_one_and_a_wrong_count_is_a_fault(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,requests", "0,5", "60,", "120,NaN", "180,many")
    traffic = read_traffic(path, gaps=True)
    assert np.isnan(traffic.demand.values).tolist() == [False, True, True, True]
    assert [fault.examples for fault in traffic.faults] == [((5, "180,many"),)]


def test_who_asks_for_gaps_gets_what_was_filled_in_as_one(tmp_path):
    path = written(tmp_path / "s.csv", "start_s,requests,filled", "0,5,0", "60,6,1", "120,7,0")
    assert read_traffic(path).demand.values.tolist() == [5.0, 6.0, 7.0]
    assert np.isnan(read_traffic(path, gaps=True).demand.values).tolist() == [False, True, False]
