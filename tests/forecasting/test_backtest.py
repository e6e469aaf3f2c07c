"""Rolling origin: forecast before learning, each step by itself."""

import math

import numpy as np
import pytest

from forecasting import HoltWinters, Level, Persistence, SeasonalNaive, backtest, with_baselines


def test_persistence_on_a_ramp_is_wrong_by_the_step():
    scores = backtest({"last": Persistence()}, np.arange(100.0, 130.0), steps=[1, 3], warm_up=10)["last"]
    assert [score.step for score in scores] == [1, 3]
    assert [score.mae for score in scores] == pytest.approx([1.0, 3.0])


def test_only_forecasts_whose_count_is_known_are_scored():
    history = np.arange(100.0, 120.0)
    history[15] = math.nan
    (score,) = backtest({"last": Persistence()}, history, steps=[2], warm_up=10)["last"]
    assert score.forecasts == 8  # origins 10 … 18, less the one whose count was lost


def test_nothing_is_forecast_from_what_came_later():
    history = np.concatenate((np.full(50, 10.0), np.full(10, 1000.0)))
    (score,) = backtest({"last": Persistence()}, history, steps=[1], warm_up=49)["last"]
    assert score.mae == pytest.approx(990 / 11)  # surprised once, of eleven


def test_a_stride_thins_the_origins_and_not_the_learning():
    history = np.arange(100.0, 200.0)
    (score,) = backtest({"last": Persistence()}, history, steps=[1], warm_up=10, stride=7)["last"]
    assert score.forecasts == 13 and score.mae == pytest.approx(1.0)


def test_all_steps_are_scored_over_the_same_number_of_origins():
    scores = backtest({"last": Persistence()}, np.arange(50.0), steps=[1, 5], warm_up=10)["last"]
    assert [score.forecasts for score in scores] == [36, 36]


def test_intervals_of_what_is_poisson_cover_what_they_promise():
    counts = np.random.default_rng(0).poisson(200, 1500).astype(float)
    (score,) = backtest({"level": Level(half_life=20)}, counts, steps=[1], warm_up=500)["level"]
    assert 0.76 < score.coverage_80 < 0.86 and 0.92 < score.coverage_95 < 0.98
    # Of a normal with σ: CRPS = σ/√π, pinball at 0.9 = σ φ(z₀.₉).
    assert score.crps == pytest.approx(math.sqrt(200 / math.pi), rel=0.1)
    assert score.pinball_90 == pytest.approx(math.sqrt(200) * 0.1755, rel=0.1)


def test_a_forecaster_stands_beside_its_baselines():
    assert list(with_baselines(HoltWinters(48), season_length=48)) == [
        "HoltWinters",
        "Persistence",
        "SeasonalNaive",
    ]


@pytest.mark.parametrize(
    ("steps", "warm_up", "match"), [([1], 30, "more than 30"), ([5], 26, "more than 30"), ([0], 10, ">= 1")]
)
def test_what_cannot_be_tested_is_refused(steps, warm_up, match):
    with pytest.raises(ValueError, match=match):
        backtest({"last": Persistence()}, np.arange(30.0), steps=steps, warm_up=warm_up)


def test_a_forecaster_that_cannot_fit_the_warm_up_says_why():
    with pytest.raises(ValueError, match="season of 48"):
        backtest({"day": SeasonalNaive(48)}, np.arange(100.0), steps=[1], warm_up=40)
