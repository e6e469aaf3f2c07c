"""`autoscaler replay` as a user types it."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autoscaler.cli import main, replay_run
from autoscaler.settings.load import load

ROOT = Path(__file__).parents[2]
MINUTE, HOUR = 60, 3600


def typed(words: list[object], monkeypatch) -> int:
    """Run the command line in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["autoscaler", "replay", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.fixture
def counts(tmp_path) -> Path:
    """Half a request a second, in waves of an hour, for three hours."""
    path = tmp_path / "calls.csv"
    rows = (
        f"{MINUTE * k},{round(30 + 15 * math.sin(2 * math.pi * k / 60))}\n" for k in range(3 * HOUR // MINUTE)
    )
    path.write_text("start_s,requests\n" + "".join(rows))
    return path


@pytest.fixture
def requests(tmp_path) -> Path:
    """Every 4 s a request that takes 3 or 9 s, by the calendar."""
    path = tmp_path / "calls.jsonl"
    lines = (
        json.dumps(
            {
                "timestamp": 1_772_409_600 + 4 * k,
                "duration_s": 3.0 if k % 2 else 9.0,
                "model": "m" + str(k % 2),
            }
        )
        for k in range(900)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_it_tells_the_figures_the_verdict_and_a_configuration(counts, monkeypatch, capsys):
    words = [counts, "--service-time", "10s", "--wait", "20s", "--price", "$2.50", "--peer", "hpa@0.6"]
    assert typed([*words, "--peer", "fixed"], monkeypatch) == 0
    said = capsys.readouterr().out
    for part in (
        "calls.csv: CSV of counts, 5,401 requests in 3 h",
        "Nothing was known before it began",
        "waits p50/p95/p99",
        "hpa 0.60",
        "fixed 12",  # 45 in the busiest minute, 43 of 5 minutes: 7.4 erlangs / 0.675 = 11 or 12
        "the objective (99 % start within 20 s)",
        "Configuration for this traffic",
        "replicas_max:",
    ):
        assert part in said, part


def test_what_the_file_says_of_services_is_taken_and_said(requests, monkeypatch, capsys):
    assert typed([requests, "--peers", "none", "--json"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    # 3 and 9 s in turn: mean 6, variance 9
    assert plain["circumstances"]["service_time_mean"] == pytest.approx(6.0, rel=1e-6)
    assert plain["circumstances"]["service_scv"] == pytest.approx(0.25, rel=1e-6)
    assert "Service times are as in the file: 6 s in the mean, SCV 0.25." in plain["notes"]
    assert [each["policy"] for each in plain["policies"]] == ["autoscaler"]


def test_what_is_typed_wins_over_the_file(requests, monkeypatch, capsys):
    words = [requests, "--peers", "none", "--json", "--service-time", "2s", "--service-scv", "0"]
    assert typed(words, monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)["circumstances"]
    assert (told["service_time_mean"], told["service_scv"]) == (2.0, 0.0)


def test_only_one_model_and_only_some_of_the_time(requests, monkeypatch, capsys):
    words = [requests, "--peers", "none", "--json", "--only-model", "m1"]
    assert typed([*words, "--from", "2026-03-02T00:30", "--until", "2026-03-02T00:50"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["seconds"] == 20 * MINUTE
    assert plain["requests"] == 20 * MINUTE / 8
    assert plain["circumstances"]["service_time_mean"] == pytest.approx(3.0)


def test_history_is_the_beginning_or_a_file_of_the_time_before(counts, monkeypatch, capsys):
    words = [counts, "--service-time", "10s", "--peers", "none", "--json"]
    assert typed([*words, "--history", "1h"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["history_seconds"], plain["seconds"]) == (HOUR, 2 * HOUR)
    assert typed([*words, "--history", counts], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["history_seconds"], plain["seconds"]) == (3 * HOUR, 3 * HOUR)


def test_circumstances_reach_the_replay(counts, monkeypatch, capsys):
    words = [counts, "--service-time", "10s", "--peer", "fixed@20", "--json", "--slots", "2", "--seed", "3"]
    more = ["--supply-max", "5", "--interruptions", "2", "--gpus-per-replica", "4", "--cold-start", "30s"]
    assert typed([*words, *more], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    told = plain["circumstances"]
    assert (told["slots_per_replica"], told["supply_max"], told["gpus_per_replica"]) == (2, 5, 4)
    assert (told["interruptions_per_hour"], told["cold_start_mean"]) == (2.0, 30.0)
    for each in plain["policies"]:
        assert each["replicas_mean"] <= 5
        assert each["interruptions"] > 0


def test_with_several_seeds_there_are_confidence_intervals(counts, monkeypatch, capsys):
    words = [counts, "--service-time", "10s", "--peer", "fixed", "--json", "--seeds", "3", "--until", "1h"]
    assert typed(words, monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    ours, fixed = plain["policies"]
    assert plain["seeds"] == 3
    assert ours["half_width_95"]["gpu_hours"] > 0
    assert fixed["half_width_95"]["gpu_hours"] == 0


def test_a_sweep_names_the_best_target(counts, monkeypatch, capsys):
    words = [counts, "--service-time", "10s", "--wait", "20s", "--sweep", "--peer", "fixed", "--until", "1h"]
    assert typed([*words, "--json"], monkeypatch) == 0
    plain = json.loads(capsys.readouterr().out)
    fixed = [each for each in plain["policies"] if each["policy"].startswith("fixed")]
    assert len(fixed) == 7  # the band's middle, and six targets
    assert sum(not each["tuned_in_hindsight"] for each in fixed) == 1
    assert typed(words, monkeypatch) == 0
    said = capsys.readouterr().out
    assert "*: the best target of its kind, found in hindsight" in said
    assert 1 <= sum(line.startswith("fixed") for line in said.splitlines()) <= 2


@pytest.mark.parametrize(
    "law, said",
    [
        (["--batch-alpha", "2s", "--batch-beta", "1s", "--slots", "4"], "takes 2 s + n × 1 s, n at most 4"),
        (
            ["--step-alpha", "20ms", "--step-beta", "1ms", "--tokens-out", "200", "--slots", "16"],
            "A request makes 200 tokens",
        ),
    ],
)
def test_replicas_may_serve_together(law, said, counts, tmp_path, monkeypatch):
    page = tmp_path / "p.html"
    assert typed([counts, *law, "--peers", "none", "--until", "1h", "--html", page], monkeypatch) == 0
    assert said in page.read_text("utf-8")


def test_page_picture_and_configuration(counts, tmp_path, monkeypatch, capsys):
    page, picture = tmp_path / "p.html", tmp_path / "p.png"
    page.write_text("what was there before")
    words = [counts, "--service-time", "10s", "--peer", "fixed", "--json", "--html", page, "--plot", picture]
    assert typed(words, monkeypatch) == 0
    printed = capsys.readouterr()
    assert "What happened when" in page.read_text("utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"{page} written" in printed.err
    (tmp_path / "c.yaml").write_text(json.loads(printed.out)["recommended"]["yaml"])
    assert load(tmp_path / "c.yaml", {}).pools["main"].slots_per_replica == 1
    assert {path.name for path in tmp_path.iterdir()} == {"calls.csv", "p.html", "p.png", "c.yaml"}


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_the_table_fits_the_terminal(columns, counts, monkeypatch, capsys):
    monkeypatch.setattr("autoscaler.cli.replay_show._WIDTH_OF_PIPE", columns)
    words = [counts, "--service-time", "10s", "--peer", "fixed", "--peer", "predictive-hpa", "--seeds", "2"]
    assert typed([*words, "--price", "2500", "--until", "30m"], monkeypatch) == 0
    table = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith(("policy", "predictive"))
    ]
    assert len(table) == 2
    assert all(len(line) <= columns for line in table)
    assert all("…" not in line for line in table)
    assert "GPU-hours" in table[0] and "in time" in table[0]


SERVICE = ["--service-time", "10s"]


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "--service-time: is missing, and calls.csv does not tell; say how long"),
        ([*SERVICE, "--peer", "hpaa"], "--peer hpaa: there is fixed, hpa, keda"),
        ([*SERVICE, "--peer", "hpa@70"], "--peer hpa@70: write an occupancy between 5% and 100%: hpa@0.7"),
        ([*SERVICE, "--peer", "hpa@"], "--peer hpa@: write an occupancy"),
        ([*SERVICE, "--peer", "fixed@0"], "or so many replicas: fixed@12"),
        ([*SERVICE, "--peer", "keda-queue@0.7"], "keda-queue takes no target; leave out @0.7"),
        ([*SERVICE, "--peers", "some"], "--peers some: write all, usual or none"),
        ([*SERVICE, "--band", "75%-60%"], "--band 75%-60%: write a band such as 60%-75%"),
        ([*SERVICE, "--band", "75%-60%"], "--band 75%-60%: write a band such as 60%-75%"),
        ([*SERVICE, "--price", "cheap"], "--price cheap: write a price an hour such as 2.50"),
        ([*SERVICE, "--quantile", "100%"], "'--quantile': '100%': write between 1% and 99.999%"),
        (
            [*SERVICE, "--history", "9d"],
            "--history 9d: calls.csv: a history of 9d leaves nothing to replay of 3h",
        ),
        ([*SERVICE, "--history", "absent.csv"], "--history absent.csv: no such file, and no length of time"),
        ([*SERVICE, "--from", "soon"], "--from soon: write a date such as 2026-03-01"),
        ([*SERVICE, "--from", "2026-03-01"], "--from 2026-03-01: the times in the file are relative; write"),
        ([*SERVICE, "--from", "2026-03-99"], "--from 2026-03-99: "),
        ([*SERVICE, "--from", "3h"], "--from 3h: leaves nothing of calls.csv, which spans 3h"),
        ([*SERVICE, "--until", "2m", "--from", "181m"], "--from 181m: leaves nothing of calls.csv"),
        ([*SERVICE, "--until", "0s"], "--until 0s: leaves nothing of calls.csv"),
        ([*SERVICE, "--time-zone", "Mars/Base"], "--time-zone Mars/Base: "),
        ([*SERVICE, "--duration-unit", "h"], "--duration-unit h: write s, ms, us or ns"),
        ([*SERVICE, "--kind", "gauge"], "--kind gauge: write counter, rate, count"),
        ([*SERVICE, "--html", "p.pdf"], "--html p.pdf: write the name of a file that ends in .html"),
        ([*SERVICE, "--html", "no/p.html"], "--html no/p.html: there is no folder no; make it first"),
        ([*SERVICE, "--plot", "p.html"], "--plot p.html: write the name of a file that ends in .png"),
        ([*SERVICE, "--batch-alpha", "1s"], "--service-time, --service-scv: leave them out; --batch-alpha"),
        (["--batch-alpha", "1s"], "--batch-beta: is missing; it goes with --batch-alpha"),
        (["--step-beta", "1ms"], "--step-alpha: is missing; it goes with --step-beta"),
        (
            ["--step-alpha", "1s", "--step-beta", "0s"],
            "--tokens-out: is missing, and calls.csv does not tell",
        ),
        (
            ["--step-alpha", "1s", "--step-beta", "0s", "--tokens-out", "9", "--prefill-rate", "9"],
            "--tokens-in: is missing, and calls.csv does not tell",
        ),
        (["--batch-alpha", "1s", "--step-alpha", "1s"], "--step-alpha, --step-beta: leave them out, or"),
        (["--batch-alpha", "0s", "--batch-beta", "0s"], "--batch-alpha, --batch-beta: need alpha, beta >= 0"),
        ([*SERVICE, "--supply-max", "0"], "'--supply-max': '0': write a whole number between 1 and"),
        ([*SERVICE, "--seeds", "0"], "'--seeds': '0': write a whole number between 1 and 1000"),
    ],
)
def test_what_is_impossible_names_the_option_the_value_and_the_remedy(
    words, said, counts, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert typed(["calls.csv", *words], monkeypatch) == 2
    printed = capsys.readouterr()
    assert (printed.out, said in printed.err) == ("", True), printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["calls.csv"]


@pytest.mark.parametrize(
    "rows, service_time, said",
    [
        ("0,5\n60,5\n120,1e18\n", "1s", "d.csv: 1e+18 requests are more than the 50,000,000"),
        ("0,5\n60,5\n100000020,5\n", "1s", "d.csv: 100,000,080 s in steps of 60 s, "),
        ("0,1000000\n60,5\n", "1d", "--service-time 1d: the busiest 5 minutes take "),
    ],
)
def test_more_than_can_be_replayed_names_the_limit(rows, service_time, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "d.csv").write_text(f"start_s,requests\n{rows}")
    assert typed([tmp_path / "d.csv", "--service-time", service_time], monkeypatch) == 2
    assert said in capsys.readouterr().err


def test_ctrl_c_before_anything_is_finished_ends_with_130_and_prints_nothing(counts, monkeypatch, capsys):
    monkeypatch.setattr(replay_run, "play_all", lambda stage, runs, heard: [])
    assert typed([counts, *SERVICE], monkeypatch) == 130
    assert capsys.readouterr().out == ""


def test_ctrl_c_keeps_who_is_finished_and_names_who_is_not(counts, tmp_path):
    words = [counts, *SERVICE, "--seeds", "25", "--html", tmp_path / "p.html"]
    process = subprocess.Popen(
        [sys.executable, "-m", "autoscaler", "replay", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 60.0
        for line in process.stderr:
            if "10% done" in line:
                break
            assert time.monotonic() < until
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in the group hears it
        out, err = process.communicate(timeout=60.0)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "did not finish." in out
    assert "policy" in out
    assert "Ended early" in (tmp_path / "p.html").read_text("utf-8")


def test_where_nothing_came_there_is_nothing_to_replay(tmp_path, monkeypatch, capsys):
    (tmp_path / "d.csv").write_text("start_s,requests\n0,0\n60,0\n")
    assert typed([tmp_path / "d.csv", *SERVICE], monkeypatch) == 2
    assert "d.csv: no request is left to replay; give" in capsys.readouterr().err
