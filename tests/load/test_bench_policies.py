"""The comparison of policies: who runs, who meets, who is the best peer."""

import gzip
import json
from dataclasses import fields, replace

import numpy as np
import pytest

from autoscaler.replay.report import Report
from load.bench import scenarios
from load.bench.policies_field import FIXED, OURS, PEERS, SWEEP, Contender, field_of
from load.bench.policies_record import Runs
from load.bench.policies_run import Result
from load.bench.policies_tables import best_peer, own

FIGURES = dict.fromkeys((field.name for field in fields(Report)), 0)
JUDGED = Report(
    **FIGURES
    | {"gpu_hours": 120.0, "objective_met": 0.995, "bad_windows": 0.01, "clairvoyant_gpu_hours": 100.0}
)


def result(name: str, target: float | None = None, **judged: float) -> Result:
    return Result("taxi", Contender(name, target), replace(JUDGED, **judged))


def test_each_peer_runs_at_its_default_and_over_the_sweep():
    field = field_of(["hpa", "planner arima", "keda queue"])
    assert [c.target for c in field if c.name == "hpa"] == list(SWEEP)
    assert [c.target for c in field if c.default] == [0.8, 1.0, 5.0]
    assert len(field) == 6 + 7 + 1


def test_without_names_all_run():
    assert {contender.name for contender in field_of([])} == {*OURS, *PEERS, FIXED}


@pytest.mark.parametrize("judged", [{"objective_met": 0.9899}, {"bad_windows": 0.0201}])
def test_who_misses_either_limit_does_not_meet(judged):
    assert result("hpa", 0.7).meets
    assert not result("hpa", 0.7, **judged).meets


def test_the_best_peer_is_the_cheapest_that_meets_and_never_ourselves():
    cheap = result("hpa", 0.9, gpu_hours=100.0, bad_windows=0.5)
    best, dear = result(FIXED, gpu_hours=130.0), result("hpa", 0.5, gpu_hours=150.0)
    ours = result("autoscaler", gpu_hours=110.0)
    assert best_peer([ours, cheap, dear, best]) is best
    assert own([cheap, ours]) is ours
    assert best_peer([ours, cheap]) is None


def test_runs_of_peers_are_kept_and_ours_are_made_anew(tmp_path):
    peer, ours = result("hpa", 0.7, gpu_hours=130.0), result("autoscaler")
    runs = Runs(None, tmp_path / "runs.json", hours=36.0)
    runs.add(peer)
    runs.add(ours)
    again = Runs(tmp_path / "runs.json", None, hours=36.0)
    assert again.get("taxi", Contender("hpa", 0.7)) == peer
    assert again.get("taxi", Contender("autoscaler")) is None
    assert Runs(tmp_path / "runs.json", None, hours=12.0).get("taxi", Contender("hpa", 0.7)) is None


def test_a_scenario_is_read_from_its_index_and_cut(tmp_path, monkeypatch):
    entry = {
        "replay": "a.csv.gz", "replay_interval_s": 1, "history": "b.csv.gz", "history_interval_s": 300,
        "service_mean_s": 10.0, "service_scv": 0.5, "slots_per_replica": 4, "cold_start_mean_s": 90,
        "cold_start_cv": 0.25, "control_interval_s": 10, "wait_objective_s": 5.0, "wait_quantile": 0.99,
        "initial_replicas": 7,
    }  # fmt: skip
    (tmp_path / "index.json").write_text(json.dumps({"a": entry}))
    for file, counts in (("a.csv.gz", [1, 2] * 3600), ("b.csv.gz", [300, 600])):
        with gzip.open(tmp_path / file, "wt") as lines:
            lines.write("\n".join(["requests", *map(str, counts)]))
    monkeypatch.setattr(scenarios, "SCENARIOS", tmp_path)
    assert scenarios.scenario_names() == ["a"]
    scenario = scenarios.load_scenario("a", hours=1.0)
    assert (scenario.duration, scenario.slots_per_replica, scenario.replicas_initial) == (3600.0, 4, 7)
    assert scenario.objective.wait_seconds == 5.0
    assert np.array_equal(scenario.history, [300.0, 600.0])
    assert scenarios.load_scenario("a", hours=None).duration == 7200.0


def test_where_there_are_no_traces_there_are_no_scenarios(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "SCENARIOS", tmp_path / "nowhere")
    assert scenarios.scenario_names() == []
