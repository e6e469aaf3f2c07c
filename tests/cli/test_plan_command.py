"""`autoscaler plan` as a user types it."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from autoscaler.cli.plan_pools_file import read_pools
from autoscaler.cli.plan_run import Output, run_plan
from autoscaler.cli.plan_show import show_answer, show_pools
from autoscaler.cli.plan_values import Wrong, question_of, read_values
from autoscaler.errors import SettingsError, UsageError
from autoscaler.plan.answer import answer
from autoscaler.plan.one_by_one import Impatient, OneByOne
from autoscaler.plan.pools import answer_pools
from autoscaler.plan.question import Band, WaitBound
from autoscaler.plan.together import Batches, Continuous
from autoscaler.queueing.impatience import ExponentialPatience, FixedPatience

TEN_ERLANGS = {"arrival_rate": "1/s", "service_time": "10s"}
STEPS = {"arrival_rate": "1/s", "step_alpha": "20ms", "step_beta": "1ms", "tokens_out": "200"}
BATCHES = {"arrival_rate": "1/s", "batch_alpha": "10ms", "batch_beta": "500us", "batch_max": "16"}


def as_json(capsys, **given) -> dict:
    run_plan(given, Output(as_json=True, plot=None))
    return json.loads(capsys.readouterr().out)


def as_text(capsys, **given) -> str:
    run_plan(given, Output(as_json=False, plot=None))
    return capsys.readouterr().out


def question(**given):
    return question_of(read_values(given))


# --- values


@pytest.mark.parametrize(
    "word, bound",
    [
        ("p99<2s", WaitBound(2.0, 0.99)),
        ("p99.9 <= 500ms", WaitBound(0.5, 0.999)),
        ("P50<1m", WaitBound(60.0, 0.5)),
        ("mean<1s", WaitBound(1.0, None)),
    ],
)
def test_a_wait_objective_is_read(word, bound):
    assert read_values({"wait": word})["wait"] == bound


@pytest.mark.parametrize("word", ["60%-75%", "60-75%", "0.6-0.75", "60 % – 75 %"])
def test_a_band_is_read(word):
    assert read_values({"band": word})["band"] == Band(0.60, 0.75)


@pytest.mark.parametrize(
    "word, price",
    [
        ("2.50", (2.5, "")),
        ("$2.50", (2.5, "$")),
        ("2.50€/h", (2.5, "€")),
        ("3 chf", (3.0, "CHF")),
        (2, (2.0, "")),
    ],
)
def test_a_price_is_read(word, price):
    assert read_values({"price": word})["price"] == price


def test_patience_is_random_or_fixed():
    assert question(**TEN_ERLANGS, patience="30s").service == Impatient(10.0, ExponentialPatience(30.0))
    assert question(**TEN_ERLANGS, patience="fixed:30s").service == Impatient(10.0, FixedPatience(30.0))


def test_each_way_to_serve_is_recognized_by_its_options():
    assert question(**TEN_ERLANGS, service_scv="0.5", arrival_scv="2", slots="4").service == OneByOne(
        10.0, 0.5, 2.0, 4
    )
    batches = question(**BATCHES, slots="2").service
    assert isinstance(batches, Batches)
    assert (batches.line.beta, batches.batch_max, batches.slots_per_replica) == (0.0005, 16, 2)
    steps = question(**STEPS, tokens_in="800", prefill_rate="8000/s", slots="16").service
    assert isinstance(steps, Continuous)
    assert (steps.line.prefill, steps.slots_per_replica) == (0.1, 16)


def test_slots_follow_from_the_time_that_a_token_may_take():
    assert question(**STEPS, token_time="50ms").service.slots_per_replica == 30  # (50 - 20) / 1


@pytest.mark.parametrize(
    "given, name, remedy",
    [
        ({}, "arrival_rate", "is missing"),
        ({"arrival_rate": "0/s"}, "arrival_rate", "above 0"),
        ({"arrival_rate": "fast"}, "arrival_rate", "a rate such as 1.5/s"),
        ({"arrival_rate": "1/s"}, "service_time", "is missing"),
        ({**TEN_ERLANGS, "service_time": "0s"}, "service_time", "above 0"),
        ({**TEN_ERLANGS, "arrival_rate": "1e9"}, "arrival_rate", "check its unit"),
        ({**TEN_ERLANGS, "service_scv": "11"}, "service_scv", "between 0 and 10"),
        ({**TEN_ERLANGS, "arrival_scv": "-1"}, "arrival_scv", "between 0 and 10"),
        ({**TEN_ERLANGS, "slots": "1.5"}, "slots", "a whole number"),
        ({**TEN_ERLANGS, "wait": "2s"}, "wait", "such as p99<2s"),
        ({**TEN_ERLANGS, "wait": "p100<2s"}, "wait", "below 100"),
        ({**TEN_ERLANGS, "wait": "mean<0s"}, "wait", "servers without end"),
        ({**TEN_ERLANGS, "band": "75%-60%"}, "band", "the lower edge first"),
        ({**TEN_ERLANGS, "band": "60%"}, "band", "such as 60%-75%"),
        ({**TEN_ERLANGS, "price": "cheap"}, "price", "such as 2.50"),
        ({**TEN_ERLANGS, "patience": "random:3s"}, "patience", "or fixed:30s"),
        ({**TEN_ERLANGS, "patience": "30s", "service_scv": "2"}, "service_scv", "takes it for 1"),
        ({**TEN_ERLANGS, "replicas_min": "5", "replicas_max": "3"}, "replicas_max", "at least replicas_min"),
        ({**TEN_ERLANGS, "batch_max": "4"}, "service_time", "leave it out"),
        ({"arrival_rate": "1/s", "batch_max": "4"}, "batch_alpha", "is missing"),
        ({**BATCHES, "arrival_scv": "2"}, "arrival_scv", "takes it for 1"),
        ({**BATCHES, "service_scv": "0"}, "service_scv", "between 0.05 and 1"),
        ({**BATCHES, "patience": "3s"}, "patience", "leave it out"),
        ({**BATCHES, "batch_alpha": "0s", "batch_beta": "0s"}, "batch_alpha", "above 0"),
        ({**BATCHES, **STEPS}, "step_alpha", "leave it out, or batch_alpha"),
        (STEPS, "slots", "token_time to have it found"),
        ({**STEPS, "token_time": "5ms"}, "token_time", "at least 0.021s"),
        ({**STEPS, "slots": "4", "tokens_in": "100"}, "prefill_rate", "is missing"),
        ({**STEPS, "step_beta": "0s", "token_time": "50ms"}, "slots", "is missing"),
        ({**STEPS, "tokens_out": "0"}, "tokens_out", "at least 1"),
        ({**TEN_ERLANGS, "patience": "fixed:1e300"}, "patience", "at most 1w"),
        ({**TEN_ERLANGS, "service_time": "1e300"}, "service_time", "at most 1w"),
        ({**TEN_ERLANGS, "service_time": "1e-300"}, "service_time", "at least 1us"),
        ({**TEN_ERLANGS, "slots": "1000000000"}, "slots", "at most 10,000"),
        ({**TEN_ERLANGS, "arrival_rate": "1e9/s"}, "arrival_rate", "without an exponent"),
        ({**TEN_ERLANGS, "arrival_rate": "1000000000/s"}, "arrival_rate", "less than 1,000,000/s"),
        ({**TEN_ERLANGS, "replicas_max": "10"}, "replicas_max", "at least 11"),
        ({**BATCHES, "batch_max": "1000000"}, "batch_max", "at most 1,024"),
        ({**STEPS, "tokens_out": "1e300"}, "tokens_out", "at most 1,000,000,000"),
        ({**STEPS, "arrival_rate": "1000000/s", "slots": "100"}, "arrival_rate", "of 2,000 replicas"),
        ({**STEPS, "token_time": "1w"}, "token_time", "more than 200,000 requests at once"),
    ],
)  # fmt: skip
def test_what_is_impossible_names_the_option_and_the_remedy(given, name, remedy):
    with pytest.raises(Wrong) as wrong:
        question(**given)
    assert wrong.value.name == name
    assert remedy in wrong.value.remedy


# --- the command


def test_the_table_marks_the_recommended_size_and_says_why(capsys):
    text = as_text(capsys, **TEN_ERLANGS, price="$2.50")
    marked = next(line.split() for line in text.splitlines() if line.startswith("→"))
    assert marked == [
        "→",
        "15",
        "66.7",
        "%",
        "0.102",
        "204",
        "ms",
        "1.4",
        "s",
        "4.6",
        "s",
        "yes",
        "yes",
        "$37.50",
    ]
    assert "the wait objective binds" in text


def test_a_narrow_terminal_shows_fewer_columns_and_those_whole():
    out = Console(width=60, file=StringIO())
    show_answer(out, answer(question(**TEN_ERLANGS, price="$2.50")))
    heading, *rows = out.file.getvalue().splitlines()[:8]
    assert heading.split() == ["servers", "busy", "p99", "wait", "kept", "cost", "an", "hour"]
    marked = [row.split() for row in rows if row.startswith("→")]
    assert marked == [["→", "15", "66.7", "%", "4.6", "s", "yes", "$37.50"]]


@pytest.mark.parametrize("wait, column", [("p95<5s", "p95"), ("mean<500ms", "mean wait")])
def test_a_narrow_terminal_shows_the_wait_that_decides(wait, column):
    out = Console(width=60, file=StringIO())
    show_answer(out, answer(question(**TEN_ERLANGS, wait=wait, price="$2.50")))
    assert column in out.file.getvalue().splitlines()[0]


def test_pools_on_a_narrow_terminal_keep_what_they_need_and_cost():
    pools = {"chat": question(**TEN_ERLANGS), "a-pool-with-a-long-name": question(**TEN_ERLANGS)}
    out = Console(width=60, file=StringIO())
    show_pools(out, answer_pools(pools))
    heading, first, *_ = out.file.getvalue().splitlines()
    assert heading.split() == ["pool", "replicas", "binding", "replica-hours/h"]
    assert first.split() == ["chat", "15", "wait", "15"]


def test_as_data_it_is_the_same(capsys):
    plain = as_json(capsys, **TEN_ERLANGS, price="2.50")
    assert (plain["recommended"], plain["binding"], plain["conflict"]) == (15, "wait", None)
    assert [row["servers"] for row in plain["rows"] if row["in_band"]] == [14, 15, 16]


def test_with_several_slots_rows_are_replicas_and_servers(capsys):
    assert as_text(capsys, **TEN_ERLANGS, slots="4").split()[:2] == ["replicas", "servers"]


def test_continuous_batching_tells_what_clients_see(capsys):
    text = as_text(capsys, **{**STEPS, "arrival_rate": "20/s"}, token_time="50ms")
    assert "first token" in text
    assert "per token" in text


@pytest.mark.parametrize(
    "given, complaint",
    [
        ({**TEN_ERLANGS, "slots": "0"}, "--slots 0: a whole number, at least 1"),
        ({"arrival_rate": "1/s", "batch_max": "4"}, "--batch-alpha: is missing; a batching line"),
        ({**STEPS, "token_time": "5ms"}, "--token-time 5ms: at least 0.021s"),
        (
            {"arrival_rate": "5/s", "service_time": "10s", "replicas_max": "3"},
            "--replicas-max 3: so many can carry 0.3/s of the 5/s that come; it takes at least 51",
        ),
        ({**TEN_ERLANGS, "pool": "chat"}, "--pool chat: says nothing without --pools FILE"),
        ({"interval": "1s"}, "--interval 1s: says nothing without --from FILE"),
        ({"from_": Path("a"), "pools": Path("b")}, "--pools: leave it out, or --from"),
    ],
)  # fmt: skip
def test_errors_speak_of_options(given, complaint):
    with pytest.raises(UsageError, match=complaint):
        run_plan(given, Output(as_json=False, plot=None))


def test_a_mistake_ends_with_2_and_nothing_on_stdout():
    words = ["plan", "--arrival-rate", "0/s", "--service-time", "10s"]
    done = subprocess.run(
        [sys.executable, "-m", "autoscaler", *words], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("autoscaler: --arrival-rate 0/s: a rate such as 1.5/s")
    assert "Traceback" not in done.stderr


# --- pictures


def test_a_picture_is_written_beside_the_answer(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    run_plan(TEN_ERLANGS, Output(as_json=True, plot=tmp_path / "plan.PNG"))
    assert json.loads(capsys.readouterr().out)["recommended"] == 15
    assert (tmp_path / "plan.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_unknown_form_or_without_its_library_is_refused_at_once(monkeypatch):
    with pytest.raises(UsageError, match=r"--plot p.pdf: write the name of a file that ends in .png or"):
        run_plan(TEN_ERLANGS, Output(as_json=False, plot=Path("p.pdf")))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"needs plotly; install it with: pip install 'inference-autoscaler\[plot\]'"
    ):
        run_plan(TEN_ERLANGS, Output(as_json=False, plot=Path("p.html")))


def test_a_picture_that_cannot_be_written_is_a_clear_error(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(UsageError, match=r"--plot .*there is no folder .*absent; make it first"):
        run_plan(TEN_ERLANGS, Output(as_json=True, plot=tmp_path / "absent" / "p.png"))


# --- several pools


POOLS = """\
pools:
  chat: {arrival_rate: 1/s, service_time: 10s, price: $2.50}
  code: {arrival_rate: 0.5/s, service_time: 12s, wait: p95<10s, price: $2.50}
"""


def test_pools_of_a_file_are_planned_and_compared_with_one_for_all(tmp_path, capsys):
    path = tmp_path / "pools.yaml"
    path.write_text(POOLS)
    plain = as_json(capsys, pools=path)
    assert plain["pools"]["chat"]["recommended"] == 15
    assert plain["replicas"] == 15 + plain["pools"]["code"]["recommended"]
    assert plain["one_for_all"]["recommended"] < plain["replicas"]
    text = as_text(capsys, pools=path)
    assert "One pool for all would take" in text
    assert as_json(capsys, pools=path, pool="chat")["recommended"] == 15
    with pytest.raises(UsageError, match=r"--pool chess: not in .*; there is chat, code"):
        run_plan({"pools": path, "pool": "chess"}, Output(as_json=True, plot=None))
    with pytest.raises(UsageError, match="--slots: write it into"):
        run_plan({"pools": path, "slots": "2"}, Output(as_json=True, plot=None))


def test_every_problem_of_a_file_of_pools_is_told_with_its_place(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(
        "pools:\n  chat: {arrival_rate: 1/s, servce_time: 10s}\n  code: {arrival_rate: 0, service_time: 1s}\n"
        "  embed: {arrival_rate: 5/s}\n  none:\npool: {}\n"
    )
    with pytest.raises(SettingsError) as error:
        read_pools(path, None)
    lines = str(error.value).removeprefix(str(path)).split(f"\n{path}")
    assert [line.split("  ", 1)[1].split(";")[0] for line in lines] == [
        "pools.chat.servce_time: unknown key",
        "pools.code.arrival_rate: got 0",
        "pools.embed.service_time: is missing",
        "pools.none: got nothing",
        "pool: unknown key",
    ]
    assert "did you mean service_time?" in lines[0]


# --- from traffic of the past


def written(path: Path, rates: list[float], interval: int = 60) -> Path:
    rows = [f"{number * interval},{rate * interval:g}" for number, rate in enumerate(rates)]
    path.write_text("\n".join(["start_s,requests", *rows, "broken,1"]) + "\n")
    return path


def test_traffic_is_planned_for_its_peak_hour_and_its_mean(tmp_path, capsys):
    path = written(tmp_path / "day.csv", [0.5] * 120 + [1.0] * 60)
    plain = as_json(capsys, from_=path, service_time="10s")
    assert plain["plans"]["peak_hour"]["arrival_rate"] == pytest.approx(1.0)
    assert plain["plans"]["mean"]["arrival_rate"] == pytest.approx(2 / 3)
    assert plain["recommended"] == plain["plans"]["peak_hour"]["recommended"] == 15
    assert plain["traffic"]["unusable"] == 1
    assert plain["traffic"]["faults"][0]["reason"] == "the time cannot be read"
    assert plain["day"]["for_peak"]["replicas"] == 15
    text = as_text(capsys, from_=path, service_time="10s")
    assert "181 lines, 1 of them unusable" in text
    assert "1 line: the time cannot be read; the first is line 182: broken,1" in text
    assert "Fixed for the mean" in text


def test_service_times_of_the_file_are_used_unless_they_are_given(tmp_path, capsys):
    path = tmp_path / "r.csv"
    path.write_text("arrival,duration\n" + "".join(f"{2 * n},{4.5 + n % 2}\n" for n in range(4000)))
    assert as_json(capsys, from_=path)["traffic"]["service_time_mean"] == 5.0
    mean = as_json(capsys, from_=path)["rows"][0]
    assert mean["utilization"] == pytest.approx(2.5 / mean["servers"], rel=0.01)
    given = as_json(capsys, from_=path, service_time="10s")["rows"][0]
    assert given["utilization"] == pytest.approx(5.0 / given["servers"], rel=0.01)


def test_tokens_of_the_file_are_used_with_a_step_line(tmp_path, capsys):
    path = tmp_path / "r.csv"
    rows = "".join(f"{n},1000,{100 + 200 * (n % 2)}\n" for n in range(600))
    path.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    line = {"step_alpha": "20ms", "step_beta": "1ms", "prefill_rate": "10000/s", "slots": "8"}
    row = as_json(capsys, from_=path, **line)["rows"][-1]
    alone = 0.1 + 200 * 0.021
    assert row["first_token_mean"] == pytest.approx(0.121, abs=0.02)
    assert row["requests_mean"] * row["replicas"] == pytest.approx(alone, rel=0.2)


def test_what_a_file_does_not_say_is_asked(tmp_path):
    path = written(tmp_path / "day.csv", [1.0] * 10)
    with pytest.raises(UsageError, match=r"--service-time: is missing, and .*day.csv does not tell"):
        run_plan({"from_": path}, Output(as_json=True, plot=None))
    with pytest.raises(UsageError, match="--arrival-rate: leave it out, or --from"):
        run_plan({"from_": path, "arrival_rate": "1/s"}, Output(as_json=True, plot=None))
    with pytest.raises(UsageError, match="--duration-unit hours: s, ms, us or ns"):
        run_plan({"from_": path, "duration_unit": "hours"}, Output(as_json=True, plot=None))


def test_what_hardly_happens_is_not_said_in_powers_of_ten(capsys):
    text = as_text(capsys, arrival_rate="500/s", service_time="10s")
    assert "<0.001" in text
    assert "e-" not in text
    assert "one fewer would be above it" in text and "6,666 servers:" not in text
