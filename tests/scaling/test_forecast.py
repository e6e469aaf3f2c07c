"""Demand one lead time ahead: forecast, nowcast and error together."""

import pickle

import numpy as np
import pytest

from autoscaler.domain import Observation
from autoscaler.scaling.fit import fit
from autoscaler.scaling.forecast import DemandForecast
from autoscaler.scaling.options import DecisionPolicy
from forecasting import HoltWinters
from forecasting.series import Series

POLICY = DecisionPolicy(season=3600.0, forecast_interval=60.0)
START = 3600.0 * 100


def expected(t: float) -> float:
    """Requests a second at wall time `t`: quiet half hours of 1, busy ones of 10."""
    return 10.0 if t % 3600.0 >= 1800.0 else 1.0


def warmed(hours: int = 12) -> DemandForecast:
    """A forecast that knows the season by heart, at the beginning of a quiet half hour."""
    demand = DemandForecast(POLICY, HoltWinters(season_length=60, trend=None))
    counts = [60.0 * expected(START - 3600.0 * hours + 60.0 * k) for k in range(60 * hours)]
    demand.warm(np.array(counts), 60.0, START)
    job = demand.refit_due(now=0.0)
    assert job is not None
    demand.adopt(job())
    return demand


def lived(demand: DemandForecast, duration: float, rate) -> float:
    """Let `duration` [s] pass at `rate(t)` in intervals of 10 s; return the wall time at the end."""
    for k in range(1, round(duration / 10) + 1):
        wall_time = START + 10.0 * k
        arrivals = round(10 * rate(wall_time - 5.0))
        observation = Observation(10.0, arrivals, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, wall_time)
        demand.update(observation, elapsed=10.0)
        demand.learn_error(observation, lead_time=120.0, now=10.0 * k)
    return START + duration


def test_the_season_is_seen_one_lead_time_ahead():
    demand = warmed()
    lived(demand, 1700.0, expected)  # 100 s before the busy half hour
    assert demand.demand(lead_time=30.0, hold=0.0).lead.predicted == pytest.approx(1.0, rel=0.35)
    assert demand.demand(lead_time=300.0, hold=0.0).lead.predicted == pytest.approx(10.0, rel=0.1)


def test_the_peak_of_the_hold_is_at_least_what_one_lead_time_asks():
    demand = warmed()
    lived(demand, 1500.0, expected)
    ahead = demand.demand(lead_time=60.0, hold=600.0)
    assert ahead.lead.predicted == pytest.approx(1.0, rel=0.2)
    assert ahead.peak.predicted == pytest.approx(10.0, rel=0.1)


def test_a_surge_in_a_quiet_hour_does_not_multiply_the_busy_one():
    demand = warmed()
    lived(demand, 1750.0, lambda t: 1.0 if t < START + 1600.0 else 8.0)
    ahead = demand.demand(lead_time=300.0, hold=0.0).lead.predicted
    assert 10.0 <= ahead <= 20.0  # in proportion it would be 80


def test_a_forecast_of_nothing_where_something_comes_is_overruled_and_leaves_no_trace():
    """Two bins of the season were empty (the program had just started); the next day they are not."""
    demand = DemandForecast(POLICY, HoltWinters(season_length=60, trend=None))
    counts = [0.0 if k % 60 < 3 else 60.0 for k in range(60 * 3)]
    demand.warm(np.array(counts), 60.0, START)
    job = demand.refit_due(now=0.0)
    assert job is not None
    demand.adopt(job())
    lived(demand, 170.0, lambda t: 5.0)
    assert demand.demand(lead_time=10.0, hold=0.0).lead.predicted >= 4.0
    lived(demand, 1200.0, lambda t: 1.0)
    assert demand.demand(lead_time=10.0, hold=0.0).lead.predicted == pytest.approx(1.0, rel=0.3)


def test_without_a_season_the_rate_itself_is_followed():
    demand = DemandForecast(POLICY, HoltWinters(season_length=60))
    lived(demand, 600.0, lambda t: 4.0)
    assert demand.demand(lead_time=300.0, hold=0.0).lead.predicted == pytest.approx(4.0, rel=0.02)


def test_a_fit_that_cannot_be_made_says_why_and_changes_nothing():
    demand = warmed()
    before = demand.demand(lead_time=300.0, hold=0.0)
    template = pickle.dumps(HoltWinters(season_length=60))
    failed = fit(template, Series(np.full(10, 5.0), 60.0), until=0)
    assert failed.forecaster is None
    assert "season" in failed.failure
    demand.adopt(failed)
    assert demand.demand(lead_time=300.0, hold=0.0).lead.predicted == before.lead.predicted


def test_bins_that_close_while_a_fit_runs_are_learned_when_it_is_adopted():
    demand = warmed()
    job = demand.refit_due(now=7200.0)
    assert job is not None
    lived(demand, 900.0, expected)
    demand.adopt(job())
    lived_on = demand.demand(lead_time=1000.0, hold=0.0).lead.predicted
    assert lived_on == pytest.approx(10.0, rel=0.1)  # 1900 s after the start, not 1000 s


def test_the_outlook_asks_for_a_twelfth_of_a_season_and_no_more():
    """Each bin ahead is a forecast; bins of a second once made it thousands a step."""
    demand = warmed()
    lived(demand, 60.0, expected)
    assert np.isnan(demand.leaves(0.0, 1e9, lead_time=120.0))
    assert len(demand._seasonal._path) < 30
