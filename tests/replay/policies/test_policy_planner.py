"""The throughput planner: its arithmetic, its predictors, its profile."""

import numpy as np
import pytest

from autoscaler.replay.policies import planner_predictors
from autoscaler.replay.policies.planner import (
    PlannerPolicy,
    largest_batch,
    planned_replicas,
    replica_rate,
)
from autoscaler.replay.policies.planner_predictors import Arima, Constant, TrendOfProphet
from autoscaler.replay.scenario import Scenario
from tests.fakes.seen_by_peers import a_fleet, seen


def test_the_profile_gives_the_batch_the_rate_and_the_replicas():
    """150 tokens out at 50 ms each, steps of 20 + 0.5 B ms, 20 requests a second."""
    batch = largest_batch(step_base=0.020, step_per_request=0.0005, token_time=0.050)
    rate = replica_rate(batch, tokens_out=150, token_time=0.050)
    assert batch == 60
    assert rate == pytest.approx(8.0)
    assert planned_replicas(20.0, rate) == 3


def a_scenario(history: list[float], slots: int = 1) -> Scenario:
    return Scenario(
        np.ones(600), 1.0, service_time_mean=10.0, slots_per_replica=slots, history=np.array(history)
    )


def test_it_plans_for_as_many_as_came_in_the_last_interval():
    """360 in 180 s are 2 a second; 10 s each: 20 slots' worth, 4 a replica."""
    policy = PlannerPolicy(a_scenario([], slots=4), 1.0, "constant")
    assert policy.decide(seen(180.0, arrivals=360), a_fleet(1, slots=4), 180.0) == 5


def test_a_lower_target_asks_for_more():
    policy = PlannerPolicy(a_scenario([], slots=4), 0.5, "constant")
    assert policy.decide(seen(180.0, arrivals=360), a_fleet(1, slots=4), 180.0) == 10


def test_it_is_warmed_with_the_history_at_its_own_interval():
    """An hour of 100 requests in 300 s is 60 in 180 s: what comes next then is no surprise."""
    policy = PlannerPolicy(a_scenario([100.0] * 12), 1.0, "arima")
    assert policy.decide(seen(180.0, arrivals=60), a_fleet(4), 180.0) == 4


def test_constant_says_the_last():
    predictor = Constant()
    predictor.add(3.0)
    predictor.add(5.0)
    assert predictor.next() == 5.0


@pytest.mark.parametrize("predictor", [Arima(), TrendOfProphet(180.0)], ids=["arima", "prophet"])
def test_until_it_has_seen_five_a_predictor_says_the_last(predictor):
    assert predictor.next() == 0.0
    for count in (4.0, 9.0, 2.0, 7.0):
        predictor.add(count)
    assert predictor.next() == 7.0


@pytest.fixture
def few_orders(monkeypatch):
    """So that a test takes no seconds."""
    monkeypatch.setattr(planner_predictors, "ORDER_MAX", 1)


@pytest.mark.usefixtures("few_orders")
def test_arima_finds_the_way_back_to_the_mean():
    """x = 100 + 0.8 (x - 100) + noise: after a high value it expects less, but more than the mean."""
    rng = np.random.default_rng(1)
    values = [100.0]
    for noise in rng.normal(0, 5, 79):
        values.append(100 + 0.8 * (values[-1] - 100) + noise)
    predictor = Arima()
    for value in values:
        predictor.add(value)
    predictor.next()
    predictor.add(150.0)
    assert 125 < predictor.next() < 149


@pytest.mark.usefixtures("few_orders")
def test_arima_carries_a_drift_on():
    """A walk that gains 5 an interval, forecast step by step after its fit."""
    walk = 500 + np.cumsum(np.random.default_rng(2).normal(5, 2, 50))
    predictor = Arima()
    for count in walk[:40]:
        predictor.add(float(count))
    predictor.next()
    for count in walk[40:]:
        predictor.add(float(count))
        assert predictor.next() == pytest.approx(count + 5, abs=4)


def test_the_trend_is_carried_on():
    predictor = TrendOfProphet(180.0)
    for count in np.linspace(100, 198, 50):
        predictor.add(float(count))
    assert predictor.next() == pytest.approx(200, rel=0.02)


def test_a_season_comes_in_once_the_window_holds_two_of_them():
    day = 480
    counts = 100 + 50 * np.sin(2 * np.pi * np.arange(2 * day + 120) / day)
    short, long = TrendOfProphet(180.0), TrendOfProphet(180.0, window=3360)
    for count in counts.tolist():
        short.add(count)
        long.add(count)
    assert long.next() == pytest.approx(150, rel=0.02)  # a quarter of a day in: the peak
    assert short.next() == pytest.approx(150, rel=0.02)  # from its trend alone


def test_it_never_expects_less_than_nothing():
    predictor = TrendOfProphet(180.0)
    for count in np.linspace(98, 0, 50):
        predictor.add(float(count))
    assert predictor.next() == 0.0
