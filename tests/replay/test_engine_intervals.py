"""Policies decide at their own pace; the record is kept at the scenario's."""

import dataclasses

import numpy as np
import pytest

from autoscaler.replay.run import replay
from tests.replay.scripted import Orders, scripted, steady


def test_a_policy_is_asked_at_its_own_interval_and_ticks_come_at_the_scenarios():
    policy = Orders(interval=15.0)
    record = replay(scripted([], [], duration=60.0), policy)
    assert [now for now, _, _ in policy.seen] == [15.0, 30.0, 45.0, 60.0]
    assert [observation.interval for _, observation, _ in policy.seen] == [15.0] * 4
    assert [tick[0] for tick in record.ticks] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def test_without_one_it_is_asked_at_every_tick():
    policy = Orders()
    record = replay(scripted([], [], duration=30.0), policy)
    assert [now for now, _, _ in policy.seen] == [tick[0] for tick in record.ticks] == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("own", [2.0, 15.0, 180.0, 0.8])
def test_what_it_sees_does_not_depend_on_how_the_record_is_kept(own):
    seen = []
    for control_interval in (10.0, own):
        scenario = steady(
            1.0, 720, service_time_mean=5.0, replicas_initial=7, control_interval=control_interval
        )
        policy = Orders(interval=own)
        replay(scenario, policy, seed=5)
        seen.append([dataclasses.asdict(observation) for _, observation, _ in policy.seen])
    assert len(seen[0]) == len(seen[1])
    for split, whole in zip(*seen, strict=True):
        assert split == pytest.approx(whole, abs=1e-6)


def test_every_policy_meets_the_same_requests_and_a_fixed_fleet_the_same_waits():
    scenario = steady(1.0, 1200, service_time_mean=5.0, replicas_initial=6)
    often, seldom = (replay(scenario, Orders(interval=interval), seed=3) for interval in (2.0, 180.0))
    assert often.waits.tolist() == seldom.waits.tolist()
    assert np.array(often.ticks) == pytest.approx(np.array(seldom.ticks))


def test_the_wait_of_the_oldest_and_the_queue_are_as_of_the_end_of_the_interval():
    policy = Orders()
    replay(scripted([1.0, 2.0, 3.0], [30.0, 30.0, 30.0], duration=20.0), policy)
    now, first, _ = policy.seen[0]
    assert (now, first.in_flight, first.queue_depth, first.oldest_wait) == (10.0, 3, 2, 8.0)
    assert (first.arrivals, first.completions, first.busy_slots_mean) == (3, 0, pytest.approx(0.9))


def test_busy_time_is_that_within_the_replay():
    record = replay(scripted([1.0, 15.0], [4.0, 30.0], duration=20.0), Orders())
    assert record.busy_seconds == pytest.approx(4.0 + 5.0)


class Woken(Orders):
    """Wants one replica once there is demand, and is woken by arrivals."""

    wake_delay = 0.25

    def decide(self, observation, fleet, now):
        super().decide(observation, fleet, now)
        return 1 if observation.in_flight else 0


def test_who_is_woken_decides_soon_after_the_first_arrival_that_finds_nothing_and_once_for_a_burst():
    policy = Woken()
    scenario = scripted(
        [13.0, 13.1, 13.2, 14.0], [1.0] * 4, replicas_initial=0, cold_start_mean=5.0, cold_start_cv=0.0
    )
    record = replay(scenario, policy)
    assert [now for now, _, _ in policy.seen] == [10.0, 13.25, 20.0, 30.0, 40.0, 50.0, 60.0]
    assert [seen.arrivals for _, seen, _ in policy.seen][:3] == [0, 3, 1]
    assert record.waits[0] == pytest.approx(0.25 + 5.0)


def test_who_is_not_woken_decides_at_its_interval():
    policy = Orders({10.0: 0, 20.0: 1})
    scenario = scripted([13.0], [1.0], replicas_initial=0, cold_start_mean=5.0, cold_start_cv=0.0)
    assert replay(scenario, policy).waits[0] == pytest.approx(7.0 + 5.0)
