"""The naive forecasters, by hand."""

import math

import numpy as np
import pytest

from forecasting import Level, Persistence, SeasonalNaive

NAN = math.nan


def means(forecaster, horizon):
    return [distribution.point for distribution in forecaster.forecast(horizon)]


def test_persistence_repeats_the_last_known_count():
    forecaster = Persistence().fit(np.array([3.0, 8.0, NAN]))
    assert means(forecaster, 3) == [8.0, 8.0, 8.0]


def test_the_error_of_persistence_grows_with_the_horizon_as_a_random_walk_does():
    walk = 2e6 + np.cumsum(np.random.default_rng(0).normal(0, 5000, 3000))
    variances = [d.variance for d in Persistence().fit(walk).forecast(8)]
    assert variances[0] == pytest.approx(5000**2, rel=0.4)
    assert variances[3] / variances[0] == pytest.approx(4, rel=0.3)
    assert variances[7] / variances[0] == pytest.approx(8, rel=0.35)


def test_seasonal_naive_repeats_the_season_from_where_it_is():
    forecaster = SeasonalNaive(3).fit(np.array([1.0, 2.0, 3.0, 10.0]))
    assert means(forecaster, 5) == [2.0, 3.0, 10.0, 2.0, 3.0]


def test_seasonal_naive_takes_the_season_before_where_the_last_has_a_hole():
    forecaster = SeasonalNaive(3).fit(np.array([1.0, 2.0, 3.0, 10.0, NAN, 30.0]))
    assert means(forecaster, 3) == [10.0, 2.0, 30.0]


def test_seasonal_naive_bridges_a_time_it_never_knew_with_the_mean():
    assert means(SeasonalNaive(3).fit(np.array([1.0, NAN, 3.0])), 3) == [1.0, 2.0, 3.0]


def test_seasonal_naive_refuses_less_than_a_season():
    with pytest.raises(ValueError, match="season of 288 counts, got 287"):
        SeasonalNaive(288).fit(np.ones(287))


def test_a_level_weighs_counts_by_half_per_half_life():
    # Weights 1, 1/2, 1/4 of 8, 4, 0: (8 + 2 + 0) / (7/4).
    assert means(Level(half_life=1.0).fit(np.array([0.0, 4.0, 8.0])), 2) == [40 / 7, 40 / 7]


def test_a_level_counts_the_age_of_what_it_knows_through_a_gap():
    # Weights 1 and 1/8 of 8 and 0.
    assert means(Level(half_life=1.0).fit(np.array([0.0, NAN, NAN, 8.0])), 1) == [64 / 9]


def test_a_level_knows_poisson_noise_when_it_sees_it():
    counts = np.random.default_rng(0).poisson(400, 2000).astype(float)
    (now,) = Level(half_life=5.0).fit(counts).forecast(1)
    assert now.mean == pytest.approx(400, rel=0.05)
    # One count's own noise, and that of the mean: σ² (1 + (1 - w) / (1 + w)).
    w = 0.5**0.2
    assert now.variance == pytest.approx(400 * (1 + (1 - w) / (1 + w)), rel=0.4)


def test_a_level_follows_a_fall_to_zero():
    forecaster = Level(half_life=2.0).fit(np.array([100.0] * 20 + [0.0] * 40))
    assert means(forecaster, 1)[0] < 0.01


@pytest.mark.parametrize("half_life", [0.0, -1.0, math.inf, NAN])
def test_a_half_life_is_positive(half_life):
    with pytest.raises(ValueError, match="half_life"):
        Level(half_life)
