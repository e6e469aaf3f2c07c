"""Replicas that are lost with requests on them."""

import pytest

from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.run import replay
from tests.replay.scripted import Orders, scripted, steady

RATE = 1 / 300.0


def interrupted(batching=None, **circumstances):
    scenario = steady(
        1.0,
        3600,
        service_time_mean=8.0,
        replicas_initial=8,
        slots_per_replica=2,
        cold_start_mean=20.0,
        **circumstances,
    )
    return scenario if batching is None else scenario.batched(batching)


def test_replicas_are_lost_at_the_rate_said_and_replaced_without_being_asked():
    policy = Orders()
    record = replay(interrupted(interruption_rate=RATE), policy, seed=1)
    ready_seconds = sum(fleet.ready for _, _, fleet in policy.seen) * 10.0
    expected = ready_seconds * RATE
    assert record.interruptions == pytest.approx(expected, abs=4 * expected**0.5)  # Poisson
    assert {fleet.ordered for _, _, fleet in policy.seen} == {8}
    assert record.scale_ups == record.scale_downs == 0


@pytest.mark.parametrize("batching", [None, BatchLine(2.0, 1.0), StepLine(0.02, 0.005, tokens_out=200)])
def test_a_request_that_broke_comes_again_at_the_door_and_is_served_once_more(batching):
    policy = Orders()
    scenario = interrupted(batching, interruption_rate=RATE)
    record = replay(scenario, policy, seed=2)
    last = policy.seen[-1][1]
    door = sum(observation.arrivals for _, observation, _ in policy.seen)
    freed = sum(observation.completions for _, observation, _ in policy.seen)
    assert record.broken > 20
    assert door == len(record.arrivals) + record.broken
    assert freed == door - last.in_flight  # those that broke gave their slots back as well


def test_the_lost_service_is_part_of_the_wait():
    """One replica; a service of 60 s, and it lives for 40 s on average: the record shows the last attempt."""
    policy = Orders()
    scenario = scripted(
        [1.0], [60.0], duration=600.0, interruption_rate=1 / 40.0, cold_start_mean=7.0, cold_start_cv=0.0
    )
    record = replay(scenario, policy, seed=3)
    assert record.broken == 8
    served = sum(observation.service_time_sum for _, observation, _ in policy.seen)
    ended = 1.0 + served + 7.0 * record.broken  # attempts, and a start after each that broke
    assert record.waits[0] == pytest.approx(ended - 60.0 - 1.0)


def test_without_interruptions_the_record_is_as_it_was():
    calm, rare = (replay(interrupted(interruption_rate=rate), Orders(), seed=3) for rate in (0.0, 1e-12))
    assert calm.waits.tolist() == rare.waits.tolist()
    assert (calm.interruptions, rare.interruptions) == (0, 0)


def test_a_draining_replica_that_is_lost_is_not_replaced():
    policy = Orders({10.0: 0})
    scenario = scripted(
        [1.0], [1e6], duration=2000.0, interruption_rate=1 / 100.0, replicas_initial=1, cold_start_mean=5.0
    )
    record = replay(scenario, policy, seed=5)
    assert record.interruptions == 1
    last = policy.seen[-1][2]
    assert (last.ready, last.starting, last.draining) == (0, 0, 0)
