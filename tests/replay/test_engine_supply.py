"""Starts, supply and removal: replicas come when they can and go when they are done."""

import numpy as np
import pytest

from autoscaler.replay.run import replay
from tests.replay.scripted import Orders, scripted

STEADY_START = {"cold_start_mean": 15.0, "cold_start_cv": 0.0}


def fleets(policy: Orders) -> list[tuple[int, int, int]]:
    return [(fleet.ready, fleet.starting, fleet.draining) for _, _, fleet in policy.seen]


def test_what_is_ordered_beyond_the_supply_stays_starting_until_it_is_cancelled():
    """Family F6: 50 wanted, 2 can be had; then the need ends."""
    policy = Orders({10.0: 50, 50.0: 1})
    record = replay(scripted([], [], supply_max=2, replicas_initial=0, **STEADY_START), policy)
    assert fleets(policy) == [(0, 0, 0), (0, 50, 0), (2, 48, 0), (2, 48, 0), (2, 48, 0), (1, 0, 0)]
    assert record.replica_seconds == pytest.approx(50.0 + 40.0)  # those that never came cost nothing


def test_a_draining_replica_is_taken_back_before_another_waits_for_supply():
    policy = Orders({10.0: 1, 20.0: 3})
    scenario = scripted([1.0, 1.0], [24.0, 90.0], supply_max=2, replicas_initial=2)
    replay(scenario, policy)
    assert fleets(policy)[:4] == [(2, 0, 0), (1, 0, 1), (2, 1, 0), (2, 1, 0)]


def test_the_place_of_a_lost_replica_is_taken_by_its_replacement():
    policy = Orders({10.0: 5})
    scenario = scripted(
        [], [], duration=3600.0, supply_max=2, interruption_rate=1 / 200.0, replicas_initial=2, **STEADY_START
    )
    record = replay(scenario, policy, seed=1)
    assert record.interruptions > 10
    assert {sum(fleet) for fleet in fleets(policy)[1:]} == {5}
    assert max(ready for ready, _, _ in fleets(policy)) == 2
    assert record.replica_seconds == pytest.approx(2 * 3600.0)


def test_supply_limits_the_first_fleet_too():
    policy = Orders()
    replay(scripted([], [], supply_max=2, replicas_initial=3), policy)
    assert fleets(policy)[0] == (2, 1, 0)


def test_what_never_comes_is_cancelled_before_what_will():
    policy = Orders({10.0: 4, 20.0: 2})
    replay(scripted([], [], supply_max=3, replicas_initial=1, cold_start_mean=100.0), policy)
    assert fleets(policy)[:3] == [(1, 0, 0), (1, 3, 0), (1, 1, 0)]


def test_a_start_takes_its_time_and_is_paid_for():
    policy = Orders({10.0: 2})
    record = replay(scripted([], [], replicas_initial=1, **STEADY_START), policy)
    assert fleets(policy)[:4] == [(1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 0, 0)]
    assert record.replica_seconds == pytest.approx(60.0 + 50.0)


def test_starts_are_drawn_from_those_measured():
    starts = np.array([5.0, 25.0])
    scenario = scripted([], [], cold_starts=starts, replicas_initial=0)
    assert (scenario.start_time_mean, scenario.start_time_p90) == (15.0, pytest.approx(23.0))
    rng = np.random.default_rng(1)
    assert {scenario.start_time(rng) for _ in range(50)} == {5.0, 25.0}
    policy = Orders({10.0: 100})
    replay(scenario, policy)
    ready = [fleet.ready for _, _, fleet in policy.seen]
    assert ready[1] == pytest.approx(50, abs=20)
    assert ready[2:] == [ready[1], 100, 100, 100]  # at 30 s and at 35 s


def test_what_is_starting_goes_before_what_is_idle_and_that_before_what_is_busy():
    policy = Orders({10.0: 4, 20.0: 3, 30.0: 2, 40.0: 1})
    scenario = scripted(
        [1.0, 2.0], [100.0, 100.0], slots_per_replica=2, replicas_initial=3, cold_start_mean=500.0
    )
    replay(scenario, policy)
    # The start is cancelled, then the idle one ends at once; then both are as busy, and the first drains.
    assert fleets(policy) == [(3, 0, 0), (3, 1, 0), (3, 0, 0), (2, 0, 0), (1, 0, 1), (1, 0, 1)]
