"""`autoscaler forecast` and `autoscaler history import` as a user types them."""

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from autoscaler.cli import forecast_show, main
from autoscaler.telemetry.history_reader import HistoryReader
from tests.fakes.prometheus_server import ABSENT, installed, running

HOUR, DAY = 3600, 86_400


def typed(words: list[object], monkeypatch) -> int:
    """Run the command line in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["autoscaler", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def count(hour: int) -> int:
    """Requests in an hour, within a few per cent of a wave of a day."""
    return round(500 + 300 * math.sin(2 * math.pi * hour / 24) + 40 * math.sin(hour * hour))


@pytest.fixture
def series(tmp_path) -> Path:
    path = tmp_path / "calls.csv"
    path.write_text("start_s,requests\n" + "".join(f"{HOUR * k},{count(k)}\n" for k in range(24 * 7)))
    return path


def test_it_tells_what_was_found_what_comes_and_how_good_that_has_been(series, monkeypatch, capsys):
    assert typed(["forecast", series], monkeypatch) == 0
    said = capsys.readouterr().out
    for part in (
        "calls.csv: CSV of counts",
        "168 intervals of 1 h: 7 days",
        "no gaps",
        "it repeats after a day",
        "Chosen for 2 h ahead:",
        "time to fit",
        "Forecast, requests in 1 h",
        "day 7, 0:00",
        "Mean error in the past",
        "Judged on",
    ):
        assert part in said, part


def test_a_narrow_terminal_shows_fewer_columns_and_those_whole(series, monkeypatch, capsys):
    monkeypatch.setattr(forecast_show, "_WIDTH_OF_PIPE", 60)
    assert typed(["forecast", series], monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line.split("  ") for line in lines if line.lstrip().startswith(("from ", "ahead "))]
    assert [[word.strip() for word in each if word.strip()] for each in headings] == [
        ["from", "ahead", "mean", "80 % between", "99 % below"],
        ["ahead", "seasonal regression", "smaller by", "in its 80 %"],
    ]
    assert not any("…" in line for line in lines)


def test_one_request_is_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "c.csv").write_text("start_s,requests\n0,0\n60,1\n120,0\n180,0\n")
    assert typed(["forecast", tmp_path / "c.csv"], monkeypatch) == 0
    assert "  1 request: " in capsys.readouterr().out


def test_as_json_it_is_data_with_the_backtest_only_if_asked(series, monkeypatch, capsys):
    assert typed(["forecast", series, "--json"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["interval_seconds"], plain["missing"], plain["backtest"]) == (3600.0, 0, None)
    assert [season["period_seconds"] for season in plain["seasons"]] == [DAY]
    assert typed(["forecast", series, "--json", "--backtest", "--horizon", "3h"], monkeypatch) == 0
    rows = json.loads(capsys.readouterr().out)["backtest"]
    assert [row["horizon_seconds"] for row in rows] == [3600.0, 7200.0, 10800.0, 21600.0, 43200.0]
    assert all(row["mae"] < row["persistence_mae"] for row in rows)


def test_a_time_stamp_column_places_it_in_the_calendar_and_absent_rows_are_gaps(
    tmp_path, monkeypatch, capsys
):
    path = tmp_path / "calls.csv"
    rows = (
        f"2026-03-{1 + k // 24:02d}T{k % 24:02d}:00:00Z,{count(k)}\n" for k in range(96) if k not in (30, 31)
    )
    path.write_text("timestamp,requests\n" + "".join(rows))
    assert typed(["forecast", path, "--json"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["start"], plain["missing"]) == ("2026-03-01T00:00:00+00:00", 2)
    assert plain["gaps"] == [
        {"start": "2026-03-02T06:00:00+00:00", "start_seconds": 108000.0, "seconds": 7200.0}
    ]


@pytest.mark.parametrize("name", ["p.png", "p.html"])
def test_it_draws(series, tmp_path, name, monkeypatch, capsys):
    assert typed(["forecast", series, "--no-backtest", "--plot", tmp_path / name], monkeypatch) == 0
    assert (tmp_path / name).stat().st_size > 10_000
    assert "p." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "give one of SERIES, --history FILE and --prometheus URL with --query; got nothing"),
        (["calls.csv", "--history", "h.db"], "got SERIES and --history"),
        (["--prometheus", "http://h"], "--prometheus and --query: give both"),
        (["calls.csv", "--since", "4w"], "--since: says nothing without --prometheus"),
        (["calls.csv", "--step", "soon"], "'--step': 'soon': write a time such as 250ms"),
        (["calls.csv", "--step", "0s"], "'--step': '0s': write between 1ms and 3660d"),
        (
            ["--prometheus", "http://h", "--query", "x", "--kind", "gauge"],
            "--kind gauge: counter, rate, count",
        ),
        (["absent.csv"], "absent.csv: cannot be read"),
        (["bad.csv"], "bad.csv:4: '7200,many': the count is no number"),
        (["short.csv"], "short.csv: cannot be forecast: no candidate can be judged on 2 counts"),
        (["empty.csv"], "empty.csv: is empty"),
        (
            ["calls.csv", "--step", "90m"],
            "--step 90m: calls.csv counts in intervals of 1h; give a multiple",
        ),
        (["calls.csv", "--plot", "p.gif"], "--plot p.gif: write the name of a file that ends in .png or"),
        (["calls.csv", "--zone", "Mars"], "--zone Mars: no time zone is called 'Mars'"),
        (["calls.csv", "--horizon", "9d"], "calls.csv: cannot be forecast"),
        (["--history", "absent.db"], "absent.db: no such file"),
    ],
)
def test_a_mistake_is_named_and_ends_with_2(series, words, said, monkeypatch, capsys):
    monkeypatch.chdir(series.parent)
    Path("bad.csv").write_text("start_s,requests\n0,1\n3600,2\n7200,many\n10800,3\n")
    Path("short.csv").write_text("start_s,requests\n0,1\n3600,2\n")
    Path("empty.csv").write_text("")
    assert typed(["forecast", *words], monkeypatch) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_ctrl_c_ends_it_at_once_and_leaves_nothing(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("start_s,requests\n" + "".join(f"{60 * k},{count(k)}\n" for k in range(1440 * 14)))
    running = subprocess.Popen(
        [sys.executable, "-m", "autoscaler", "forecast", str(path), "--plot", str(tmp_path / "p.png")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(1.5)  # in the middle of it, or still importing: either way
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=30)
    assert running.returncode in (130, -signal.SIGINT), complaint  # the same to a shell
    assert b"Traceback" not in complaint
    assert [file.name for file in tmp_path.iterdir()] == ["long.csv"]


# --- import

INTO = ["--history", "h.db", "--pool", "a"]


def imported(tmp_path) -> list[float]:
    with HistoryReader(tmp_path / "h.db") as history:
        (span,) = history.pools()
        return history.arrivals(span.pool, HOUR, span.start_wall, span.end_wall).tolist()


def test_a_file_goes_into_a_history_once(series, tmp_path, monkeypatch, capsys):
    words = [
        "history",
        "import",
        series,
        "--history",
        tmp_path / "h.db",
        "--pool",
        "chat",
        "--start",
        "2026-03-01",
    ]
    assert typed(words, monkeypatch) == 0
    said = capsys.readouterr().out
    assert "168 intervals of 1h, 2026-03-01 00:00 UTC to 2026-03-08 00:00 UTC" in said
    assert f"168 intervals with {sum(map(count, range(168))):,} requests added to pool chat." in said
    assert imported(tmp_path) == [count(k) for k in range(168)]
    assert typed([*words, "--json"], monkeypatch) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["intervals"], again["added"], again["arrivals"]) == (168, 0, 0)


def test_what_was_imported_can_be_forecast(series, tmp_path, monkeypatch, capsys):
    words = ["--history", tmp_path / "h.db", "--pool", "chat"]
    assert typed(["history", "import", series, *words, "--start", "2026-03-01"], monkeypatch) == 0
    capsys.readouterr()
    assert typed(["forecast", *words, "--step", "1h", "--json"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["source"], plain["intervals"]) == ("pool chat", 168)


def test_a_configuration_names_the_history_and_its_only_pool(series, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    platform = "platform: {kind: static, urls: ['http://127.0.0.1:9']}"
    Path("f.yaml").write_text(f"history: h.db\npools:\n  chat: {{{platform}}}\n")
    assert typed(["history", "import", series, "-c", "f.yaml", "--start", "2026-03-01"], monkeypatch) == 0
    assert "added to pool chat" in capsys.readouterr().out
    assert len(imported(tmp_path)) == 168


@pytest.mark.parametrize(
    "words, said",
    [
        (["calls.csv"], "give --config FILE, whose history it is, or --history FILE itself"),
        (["calls.csv", "--history", "h.db"], "--pool: missing"),
        (
            ["calls.csv", "--history", "h.db", "--pool", "a"],
            "its times are relative; say when it begins: --start",
        ),
        (["calls.csv", "--history", "h.db", "--pool", "a", "--start", "soon"], "--start soon: not a date"),
        (
            ["calls.csv", "--history", "h.db", "--pool", "a", "--start", "2999-01-01"],
            "cannot have been counted yet",
        ),
        (["--history", "h.db", "--pool", "a"], "SERIES: is missing; name a file of demand"),
    ],
)
def test_a_mistake_in_an_import_is_named_and_leaves_no_history(series, words, said, monkeypatch, capsys):
    monkeypatch.chdir(series.parent)
    assert typed(["history", "import", *words], monkeypatch) == 2
    assert said in capsys.readouterr().err
    assert not Path("h.db").exists()


# --- a real Prometheus


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    if not installed():
        pytest.skip(ABSENT)
    end = time.time() // 300 * 300
    start = end - 10 * DAY
    values = np.cumsum([count(k // 60) // 60 for k in range(10 * 1440)])
    lines = (
        (f'calls_total{{pod="{pod}"}}', start + 60 * minute, float(value))
        for pod in "ab"
        for minute, value in enumerate(values)
    )
    with running(tmp_path_factory.mktemp("prometheus"), "calls", "counter", lines) as url:
        yield url


def test_a_counter_in_a_real_prometheus_is_forecast(prometheus, monkeypatch, capsys):
    words = ["--prometheus", prometheus, "--query", "calls_total", "--since", "4w", "--step", "30m", "--json"]
    assert typed(["forecast", *words, "--backtest"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["span_seconds"] == pytest.approx(10 * DAY, abs=3600)
    assert plain["rate_mean"] == pytest.approx(2 * 500 / 3600, rel=0.1)
    assert [season["period_seconds"] for season in plain["seasons"]] == [DAY]
    assert plain["backtest"][0]["mae"] < plain["backtest"][0]["persistence_mae"]


def test_weeks_of_a_real_prometheus_go_into_a_history(prometheus, tmp_path, monkeypatch, capsys):
    source = ["--prometheus", prometheus, "--query", "sum(rate(calls_total[5m]))", "--since", "9d"]
    words = ["history", "import", *source, "--history", tmp_path / "h.db", "--pool", "chat"]
    assert typed(words, monkeypatch) == 0
    assert "rate (by its function), 1 series added up" in capsys.readouterr().out
    known = np.array(imported(tmp_path))
    assert np.nanmean(known) == pytest.approx(2 * 500, rel=0.1)
    assert typed(words, monkeypatch) == 0
    assert "intervals with 0 requests added" in capsys.readouterr().out
