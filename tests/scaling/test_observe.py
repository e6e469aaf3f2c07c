"""Facts become observations."""

import pytest

from autoscaler.domain import Outcome, Request
from autoscaler.scaling.observe import IntervalObserver


def a_request(name: str = "r") -> Request:
    return Request(name, arrived_at=0.0, deadline=60.0)


def closed(observer: IntervalObserver, now: float):
    return observer.close(now, wall_time=1000.0 + now, in_flight=0, queue_depth=0, oldest_wait=0.0)


def test_busy_slots_are_the_integral_over_time_not_a_sample():
    observer = IntervalObserver(now=0.0)
    for name, start in (("a", 1.0), ("b", 2.0)):
        observer.arrived(a_request(name), start)
        observer.started(a_request(name), start)
    observer.slot_freed(service_time=3.0, now=4.0)
    observation = closed(observer, now=10.0)
    assert observation.busy_slots_mean == pytest.approx((3.0 + 8.0) / 10.0)
    assert (observation.arrivals, observation.completions) == (2, 1)
    assert (observation.service_time_sum, observation.service_time_square_sum) == (3.0, 9.0)


def test_what_still_runs_is_carried_into_the_next_interval():
    observer = IntervalObserver(now=0.0)
    observer.started(a_request(), now=0.0)
    closed(observer, now=10.0)
    observer.slot_freed(service_time=15.0, now=15.0)
    assert closed(observer, now=20.0).busy_slots_mean == pytest.approx(0.5)


def test_demand_is_counted_at_the_door_refused_or_not():
    observer = IntervalObserver(now=0.0)
    for name in "abc":
        observer.arrived(a_request(name), now=1.0)
    observer.ended(a_request("c"), Outcome.REJECTED, now=1.0)
    observation = closed(observer, now=10.0)
    assert (observation.arrivals, observation.rejected, observation.completions) == (3, 1, 0)


def test_a_slot_given_back_unserved_is_no_completion():
    observer = IntervalObserver(now=0.0)
    observer.arrived(a_request(), now=0.0)
    observer.started(a_request(), now=0.0)
    observer.returned(a_request(), now=2.0)
    observation = closed(observer, now=10.0)
    assert (observation.busy_slots_mean, observation.completions) == (pytest.approx(0.2), 0)


def test_a_new_interval_starts_from_zero_and_needs_length():
    observer = IntervalObserver(now=0.0)
    observer.arrived(a_request(), now=1.0)
    closed(observer, now=10.0)
    with pytest.raises(ValueError, match="needs length"):
        closed(observer, now=10.0)
    assert closed(observer, now=20.0).arrivals == 0
