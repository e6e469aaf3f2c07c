"""Who takes part: names, targets, sweeps; and everybody that can be named plays."""

import pytest

from autoscaler.replay.output.lineup import (
    FIXED,
    OWN,
    OWN_REACTING,
    PEERS,
    SWEPT,
    USUAL_PEERS,
    contender,
    lineup,
)
from autoscaler.replay.output.play import Stage, play
from tests.fakes.replay_outcome import a_scenario

# 1/s of 10 s: 10 erlangs in the busiest five minutes; in the middle of the band, 67.5 %, 14.8 replicas.
SCENARIO = a_scenario()


def names(*peers, sweep=False, no_forecast=False) -> list[str]:
    return [each.name for each in lineup(SCENARIO, peers, sweep, no_forecast)]


def test_ours_comes_first_and_a_target_stands_in_the_name():
    assert names((FIXED, None), ("hpa", 0.6)) == [OWN, "fixed 15", "hpa 0.60"]


def test_without_a_target_a_peer_aims_at_what_its_documentation_says():
    assert names(("hpa", None)) == [OWN, f"hpa {PEERS['hpa'].target:.2f}"]


def test_a_fixed_fleet_is_asked_for_by_its_size_or_by_how_busy_the_peak_finds_it():
    assert names((FIXED, 0.5), (FIXED, 12.0)) == [OWN, "fixed 20", "fixed 12"]


def test_a_sweep_tries_each_target_once_and_nobody_plays_twice():
    swept = lineup(SCENARIO, [("knative", 0.7), ("knative", 0.7)], True, False)
    assert [each.target for each in swept[1:]] == [0.7, *(target for target in SWEPT if target != 0.7)]
    assert [each.tried for each in swept] == [False, False, *[True] * (len(SWEPT) - 1)]


def test_a_sweep_leaves_out_who_takes_no_target():
    assert names(("keda-queue", None), sweep=True) == [OWN, "keda-queue"]


def test_ours_without_its_forecast_is_another_contender():
    ours, reacting = lineup(SCENARIO, (), False, True)
    assert (ours.family, reacting.family) == (OWN, OWN_REACTING)
    assert ours.is_own and reacting.is_own


def test_the_usual_peers_can_be_named():
    assert set(USUAL_PEERS) <= set(PEERS)


@pytest.mark.parametrize("family", [OWN, OWN_REACTING, *PEERS])
def test_everybody_plays_and_serves(family):
    scenario = a_scenario(cold_start_mean=30.0)
    done = play(Stage(scenario), contender(scenario, family), 0, 1.0, lambda share: None)
    assert done.report.requests == 7200
    assert done.report.gpu_hours > done.report.busy_gpu_hours > 15.0
    assert len(done.windows.start) == 24
    assert bool(done.bindings) == (family in (OWN, OWN_REACTING))
    assert done.replicas_least <= done.report.replicas_mean <= done.replicas_most


def test_a_replica_of_several_gpus_costs_as_many():
    scenario = a_scenario()
    one, eight = (
        play(Stage(scenario, gpus_per_replica=gpus), contender(scenario, FIXED), 0, 10.0, lambda share: None)
        for gpus in (1, 8)
    )
    for figure in ("gpu_hours", "busy_gpu_hours", "clairvoyant_gpu_hours"):
        assert getattr(eight.report, figure) == pytest.approx(8 * getattr(one.report, figure))
    assert eight.report.utilization == one.report.utilization
