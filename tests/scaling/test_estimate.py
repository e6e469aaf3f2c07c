"""Observations become estimates."""

from math import exp, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Observation
from autoscaler.scaling.estimate import Estimator


def observed(services: list[float], arrivals: int = 0, interval: float = 10.0) -> Observation:
    return Observation(
        interval=interval,
        arrivals=arrivals,
        completions=len(services),
        service_time_sum=sum(services),
        service_time_square_sum=sum(s * s for s in services),
        busy_slots_mean=0.0,
        in_flight=0,
        queue_depth=0,
        oldest_wait=0.0,
        wall_time=0.0,
    )


def test_nothing_served_is_not_a_service_time_of_zero():
    estimate = Estimator(service_memory=600.0).update(observed([]))
    assert not estimate.service_known
    assert isnan(estimate.service_time_mean)


def test_many_equal_services_have_their_mean_and_almost_no_variance():
    estimator = Estimator(service_memory=600.0)
    for _ in range(100):
        estimate = estimator.update(observed([2.0] * 10))
    assert estimate.service_time_mean == pytest.approx(2.0)
    assert estimate.service_scv < 0.05


def test_a_few_services_say_little_of_the_variance():
    assert Estimator(600.0).update(observed([2.0, 2.0])).service_scv == pytest.approx(20 / 22)


def test_old_services_fade():
    estimator = Estimator(service_memory=10.0)
    estimator.update(observed([1.0] * 100, interval=10.0))
    estimate = estimator.update(observed([2.0] * 100, interval=10.0))
    assert estimate.service_time_mean == pytest.approx((exp(-1) * 1.0 + 2.0) / (exp(-1) + 1))


def test_the_arrival_rate_follows_the_last_minute():
    estimator = Estimator(600.0)
    for _ in range(60):
        estimate = estimator.update(observed([1.0], arrivals=30))
    assert estimate.arrival_rate == pytest.approx(3.0)


@given(st.lists(st.lists(st.floats(1e-3, 1e3), max_size=5), min_size=1, max_size=20))
def test_estimates_stay_within_what_was_seen(intervals):
    estimator = Estimator(600.0)
    for services in intervals:
        estimate = estimator.update(observed(services))
    seen = [s for services in intervals for s in services]
    if seen:
        assert min(seen) * (1 - 1e-9) <= estimate.service_time_mean <= max(seen) * (1 + 1e-9)
        assert estimate.service_scv >= 0
    else:
        assert not estimate.service_known
