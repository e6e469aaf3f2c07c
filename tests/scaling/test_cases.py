"""What autoscalers did to their users: the families of scaling cases that need a script of their own.

The others stand beside the part that they are about, under the same names: F1, F2, F4, F5, F7, F8, F10, F11
and F15 in `test_controller` and `test_decide`, F13 on a replica and F16 in `tests/replay`.
"""

import numpy as np
import pytest

from autoscaler.domain import Binding, Objective, Observation, Reason
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.estimate import Estimator
from autoscaler.scaling.window import RecentQuantile
from tests.scaling.plant import Plant

RELAXED = Objective(wait_seconds=30.0, wait_quantile=0.95)


def test_f6_what_is_pending_is_cancelled_once_the_load_has_ended_for_a_hold():
    """Fifty are needed and two can start; then the load stops, and those who waited go away."""
    hold = 60.0
    plant = Plant(Controller(RELAXED, DecisionPolicy(scale_down_hold=hold)), replicas=5, start=1e4, supply=40)
    plant.run(600.0, 3.5)
    assert len(plant.starting) == 35
    plant.queue = 0.0
    plant.run(hold + 30.0, 0.0)
    assert not plant.starting
    assert plant.sizes[-1] <= 5


def test_f9_one_jitter_does_not_decide_for_the_window():
    window = RecentQuantile(length=50.0, quantile=0.75)
    for place, wanted in enumerate([10, 10, 15, 10, 10, 5]):
        window.add(wanted, now=10.0 * place)
    assert window.value() == 10


def test_f9_a_jitter_moves_a_decision_by_a_tick_at_most():
    """The same fall of the load, with and without one odd interval in the middle of it."""

    def at_floor(jitter: float) -> float:
        plant = Plant(Controller(RELAXED), replicas=30, start=60.0)
        plant.run(900.0, 2.0)
        plant.run(100.0, 1.0)
        plant.run(10.0, jitter)
        plant.run(900.0, 1.0)
        calm = next(k for k, size in enumerate(plant.sizes) if k > 90 and size <= 18)
        return 10.0 * calm

    assert at_floor(1.2) - at_floor(1.0) <= 10.0


def test_f13_a_replica_that_is_warming_up_does_not_make_the_service_look_slow():
    """Two replicas of 1 s services; one is new, and five times as slow for its first minute."""
    estimator = Estimator(service_memory=1800.0)
    slowest = 0.0
    for k in range(120):
        fresh = 60 <= k < 66
        ended, spent, squares = (12, 20.0, 60.0) if fresh else (20, 20.0, 20.0)
        estimate = estimator.update(_observed(10.0, 20, ended, spent, squares, wall_time=10.0 * k))
        slowest = max(slowest, estimate.service_time_mean)
    assert slowest < 1.10


def test_f13_a_whole_fleet_that_was_cold_is_forgiven_within_minutes():
    estimator = Estimator(service_memory=1800.0)
    for k in range(60):
        ended, spent, squares = (4, 20.0, 100.0) if k < 6 else (20, 20.0, 20.0)
        estimate = estimator.update(_observed(10.0, 20, ended, spent, squares, wall_time=10.0 * k))
    assert estimate.service_time_mean < 1.10


@pytest.mark.parametrize("start", [60.0, 130.0])
def test_f17_a_burst_with_a_long_start_is_caught_up_with_once_and_without_a_swing(start):
    """Ten times the load within a minute: the wait is bounded by the start and the backlog's drain."""
    plant = Plant(Controller(Objective(wait_seconds=5.0)), replicas=8, start=start)
    plant.run(600.0, 0.5)
    longest = 0.0
    for _ in range(180):
        plant.run(10.0, 5.0)
        longest = max(longest, plant.queue / 5.0)
    assert longest <= 2.5 * start
    assert plant.queue == 0.0
    settled = plant.sizes[-90:]
    assert max(settled) - min(settled) <= 0.15 * max(settled)
    assert max(plant.sizes) <= 2.2 * settled[-1]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_band_and_a_wait_that_exclude_each_other_are_said_to(slots):
    """Two erlangs and hardly any wait: below about 8 slots no size keeps both."""
    plant = Plant(Controller(Objective(wait_seconds=0.1, wait_quantile=0.99)), replicas=4, slots=slots)
    plant.run(1800.0, 0.2)
    last = plant.decisions[-1]
    assert last.binding is Binding.WAIT
    assert last.reason is Reason.FEWEST_FOR_WAIT
    assert last.numbers.servers_for_wait > last.numbers.servers_for_band


def test_arrivals_in_clumps_ask_for_more_than_even_ones():
    """The same rate in clumps of twenty: no scaling can follow them, only room covers them."""

    def size(clump: int) -> float:
        rng = np.random.default_rng(5)
        plant = Plant(Controller(Objective(wait_seconds=1.0)), replicas=20, service=2.0)
        plant.run(3600.0, lambda t: clump * rng.poisson(40.0 / clump) / 10.0)
        return float(np.mean(plant.sizes[-180:]))

    assert size(20) > 1.2 * size(1)


def _observed(
    interval: float, arrivals: int, ended: int, spent: float, squares: float, wall_time: float
) -> Observation:
    return Observation(interval, arrivals, ended, spent, squares, 2.0, 2, 0, 0.0, wall_time)
