"""What every forecaster keeps, whatever its model."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import Chosen, HoltWinters, Level, Persistence, SeasonalNaive, SeasonalRegression

SEASON = 4
LEVELS = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
FORECASTERS = [
    Persistence,
    lambda: Level(half_life=2.0),
    lambda: SeasonalNaive(SEASON),
    lambda: HoltWinters(SEASON),
    lambda: HoltWinters(SEASON, trend=None, seasonal="multiplicative"),
    lambda: SeasonalRegression(SEASON),
    lambda: Chosen(SEASON),
]
NAMES = [
    "persistence",
    "level",
    "seasonal-naive",
    "holt-winters",
    "holt-winters-multiplicative",
    "seasonal-regression",
    "chosen",
]
each_forecaster = pytest.mark.parametrize("make", FORECASTERS, ids=NAMES)

counts = st.one_of(st.just(0.0), st.just(math.nan), st.floats(0, 1e4), st.floats(0, 1e308))
histories = st.lists(counts, min_size=SEASON, max_size=6 * SEASON).filter(
    lambda history: not math.isnan(history[0])
)


def day(n=8 * SEASON, seed=0):
    shape = np.tile([10.0, 40.0, 60.0, 20.0], n // SEASON + 1)[:n]
    return np.random.default_rng(seed).poisson(shape).astype(float)


def said(forecaster, horizon=3):
    """Everything that a forecast says, as numbers."""
    return [(d.mean, d.variance, d.quantile(LEVELS).tolist()) for d in forecaster.forecast(horizon)]


@each_forecaster
@settings(max_examples=30)
@given(history=histories, more=st.lists(counts, max_size=3))
def test_any_history_gives_finite_forecasts_that_are_never_negative(make, history, more):
    forecaster = make().fit(np.array(history))
    for count in more:
        forecaster.update(count)
    for distribution in forecaster.forecast(60)[:: SEASON + 1]:
        mean, variance, quantiles = (
            distribution.mean,
            distribution.variance,
            distribution.quantile(LEVELS).tolist(),
        )
        assert all(math.isfinite(each) and each >= 0 for each in (mean, variance, *quantiles))
        assert quantiles == sorted(quantiles)


@each_forecaster
@settings(max_examples=15)
@given(history=histories, more=st.lists(counts, min_size=1, max_size=3))
def test_a_restored_forecaster_says_the_same_now_and_later(make, history, more):
    forecaster = make().fit(np.array(history))
    state = json.loads(json.dumps(forecaster.to_state(), allow_nan=False))
    restored, unpickled = type(forecaster).from_state(state), pickle.loads(pickle.dumps(forecaster))
    for count in [math.nan, *more]:
        assert said(restored) == said(forecaster) == said(unpickled)
        for each in (forecaster, restored, unpickled):
            each.update(count)


@pytest.mark.parametrize("make", FORECASTERS[:3], ids=NAMES[:3])
def test_living_through_counts_and_fitting_them_at_once_are_the_same(make):
    lived = make().fit(day()[: 6 * SEASON])
    for count in day()[6 * SEASON :]:
        lived.update(count)
    fitted = make().fit(day())
    assert said(lived) == said(fitted)


@each_forecaster
def test_a_missing_count_passes_in_time_and_teaches_nothing(make):
    before, after = make().fit(day()), make().fit(day())
    after.update(math.nan)
    expected = [mean for mean, _, _ in said(before, horizon=5)]
    assert [mean for mean, _, _ in said(after, horizon=4)] == pytest.approx(expected[1:], rel=1e-9)


@each_forecaster
def test_a_second_fit_forgets_the_first(make):
    refitted = make().fit(10 * day(seed=1)).fit(day())
    assert said(refitted) == said(make().fit(day()))


@each_forecaster
def test_without_any_count_nothing_is_said(make):
    with pytest.raises(ValueError, match="call fit"):
        make().forecast(1)


@each_forecaster
@pytest.mark.parametrize("count", [-1.0, math.inf])
def test_an_impossible_count_is_refused(make, count):
    forecaster = make().fit(day())
    with pytest.raises(ValueError, match="count"):
        forecaster.update(count)
    with pytest.raises(ValueError, match="index 3"):
        forecaster.fit(np.array([1.0, 2.0, 3.0, count, 5.0]))


@each_forecaster
def test_a_horizon_has_at_least_one_step(make):
    with pytest.raises(ValueError, match="horizon"):
        make().fit(day()).forecast(0)


def test_the_state_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="Level"):
        Persistence.from_state(Level().fit(day()).to_state())


def test_a_state_that_lacks_something_is_refused():
    state = Level().fit(day()).to_state()
    del state["learned"]["weight_"]
    with pytest.raises(ValueError, match="fit anew"):
        Level.from_state(state)
