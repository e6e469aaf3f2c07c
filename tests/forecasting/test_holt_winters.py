"""Holt–Winters: the recursion against statsmodels, and how it behaves on a live system's history."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from forecasting import HoltWinters
from forecasting.holt_winters import DAMPING, LEVEL_SMOOTHING, SEASON_SMOOTHING, TREND_SMOOTHING

NAN = math.nan
DAY = 48
both = pytest.mark.parametrize("seasonal", ["additive", "multiplicative"])


def a_day(peak=200.0, n=DAY):
    return peak * (0.55 - 0.45 * np.cos(np.arange(n) / n * 2 * np.pi))


def days(count, peak=200.0, seed=0):
    return np.random.default_rng(seed).poisson(np.tile(a_day(peak), count)).astype(float)


def means(forecaster, horizon=DAY):
    return np.array([each.point for each in forecaster.forecast(horizon)])


@both
@pytest.mark.parametrize("trend", ["damped", None])
def test_the_recursion_is_that_of_statsmodels(seasonal, trend):
    counts = days(3, peak=2000.0)  # enough by night that a multiplicative error counts in full
    ours = HoltWinters(DAY, trend=trend, seasonal=seasonal).fit(counts[: DAY + 1])  # defaults; not yet 2 days
    before = HoltWinters(DAY, trend=trend, seasonal=seasonal).fit(counts[:DAY])
    theirs = ExponentialSmoothing(
        counts[DAY:],
        trend="add" if trend else None,
        damped_trend=trend is not None,
        seasonal=seasonal[:3],
        seasonal_periods=DAY,
        initialization_method="known",
        initial_level=before.level_,
        initial_trend=0.0 if trend else None,
        initial_seasonal=before.season_,
    ).fit(
        smoothing_level=LEVEL_SMOOTHING,
        smoothing_trend=TREND_SMOOTHING if trend else None,
        smoothing_seasonal=SEASON_SMOOTHING,
        damping_trend=DAMPING if trend else None,
        optimized=False,
    )
    said = []
    for count in counts[DAY + 1 :]:
        said.append(means(ours, 1)[0])
        ours.update(count)
    assert said == pytest.approx(theirs.fittedvalues[1:], rel=1e-9)
    assert means(ours, 5) == pytest.approx(theirs.forecast(5), rel=1e-9)


@both
def test_less_than_a_season_is_refused_and_says_what_serves_until_then(seasonal):
    with pytest.raises(ValueError, match="season of 48 counts, got 47; use Level"):
        HoltWinters(DAY, seasonal=seasonal).fit(days(1)[:-1])


@both
def test_one_season_gives_its_profile_with_default_smoothing(seasonal):
    forecaster = HoltWinters(DAY, seasonal=seasonal).fit(a_day())
    assert means(forecaster) == pytest.approx(a_day())
    assert (forecaster.alpha_, forecaster.gamma_) == (LEVEL_SMOOTHING, SEASON_SMOOTHING)


@both
def test_from_two_seasons_on_smoothing_is_estimated(seasonal):
    forecaster = HoltWinters(DAY, seasonal=seasonal).fit(days(10))
    assert forecaster.alpha_ == pytest.approx(0.15, abs=0.02)  # a calm history wants none; the least is kept
    assert means(forecaster) == pytest.approx(a_day(), rel=0.25, abs=10)


@both
def test_poisson_counts_are_forecast_with_little_more_than_poisson_noise(seasonal):
    forecaster = HoltWinters(DAY, seasonal=seasonal).fit(days(20))
    for distribution in forecaster.forecast(6):
        assert 0.8 < distribution.variance / distribution.mean < 1.8


@both
@pytest.mark.parametrize(
    "history",
    [
        np.zeros(5 * DAY),
        np.full(5 * DAY, 7.0),
        np.tile([0.0] * (DAY - 1) + [500.0], 5),
        np.concatenate((days(4), np.zeros(2 * DAY))),
        np.tile(a_day(), 8) * np.linspace(1, 0, 8 * DAY),
        a_day(peak=1e15),
        np.where(np.arange(5 * DAY) % 3 == 0, days(5), NAN),
        np.concatenate(([3.0], np.full(5 * DAY, NAN))),
    ],
    ids=["zeros", "constant", "one an evening", "dead", "falling to 0", "huge", "holes", "one known"],
)
def test_forecasts_of_strange_histories_are_finite_and_not_negative(seasonal, history):
    forecaster = HoltWinters(DAY, seasonal=seasonal).fit(history)
    said = means(forecaster, 2 * DAY)
    assert np.all(np.isfinite(said)) and np.all(said >= 0) and said.max() <= 2 * np.nanmax(history)


def test_zeros_for_days_end_in_forecasts_of_nothing():
    forecaster = HoltWinters(DAY).fit(np.zeros(3 * DAY))
    assert means(forecaster).max() == 0.0


@both
def test_days_of_zeros_void_the_season_and_a_long_weekend_does_not(seasonal):
    dead = HoltWinters(DAY, seasonal=seasonal).fit(np.concatenate((days(5), np.zeros(4 * DAY))))
    assert means(dead).max() == 0.0
    weekend = HoltWinters(DAY).fit(np.concatenate((days(5), np.zeros(2 * DAY))))
    assert np.ptp(weekend.season_) > 0.5 * np.ptp(a_day())


@both
def test_a_fit_after_days_of_zeros_begins_with_what_came_since(seasonal):
    back = np.concatenate((days(5, peak=2000.0), np.zeros(4 * DAY), days(2)))
    assert means(HoltWinters(DAY, seasonal=seasonal).fit(back)) == pytest.approx(a_day(), rel=0.3, abs=20)


def test_no_forecast_exceeds_twice_the_highest_count_ever_seen():
    bursts = np.where(np.random.default_rng(4).random(20 * DAY) < 0.05, 30_000.0, 0.0)
    forecaster = HoltWinters(DAY, seasonal="multiplicative").fit(bursts)
    assert means(forecaster).max() <= 60_000


@both
def test_a_spike_is_not_repeated_tomorrow(seasonal):
    clean, spiked = days(10), days(10)
    spiked[9 * DAY + 20] *= 10
    calm, upset = (HoltWinters(DAY, seasonal=seasonal).fit(each) for each in (clean, spiked))
    assert means(upset)[20] < 1.25 * means(calm)[20]
    assert means(upset).sum() < 1.1 * means(calm).sum()


@both
def test_a_spike_on_the_first_day_is_not_in_the_profile(seasonal):
    counts = days(1)
    counts[20] *= 20
    assert means(HoltWinters(DAY, seasonal=seasonal).fit(counts))[20] < 1.5 * a_day()[20]


@both
def test_a_missing_day_is_not_a_trough(seasonal):
    whole, holed = days(10), days(10)
    holed[6 * DAY : 7 * DAY] = NAN
    holed[9 * DAY + 5 : 9 * DAY + 20] = NAN
    expected = means(HoltWinters(DAY, seasonal=seasonal).fit(whole))
    assert means(HoltWinters(DAY, seasonal=seasonal).fit(holed)) == pytest.approx(expected, rel=0.15, abs=8)


@both
def test_a_gap_in_the_first_season_is_bridged(seasonal):
    counts = a_day()
    counts[20:25] = NAN
    assert means(HoltWinters(DAY, seasonal=seasonal).fit(counts)) == pytest.approx(a_day(), rel=0.1)


@both
def test_a_level_shift_is_followed_within_an_hour_of_five_minutes(seasonal):
    forecaster = HoltWinters(DAY, seasonal=seasonal).fit(days(10))
    tripled = days(1, peak=600.0, seed=1)
    start = 20
    for count in days(1, seed=2)[:start]:
        forecaster.update(count)
    for count in tripled[start : start + 12]:
        forecaster.update(count)
    ahead = slice(start + 12, start + 18)
    assert means(forecaster, 6).sum() == pytest.approx(a_day(600.0)[ahead].sum(), rel=0.3)


def test_quiet_nights_do_not_move_the_level_of_the_day():
    night_is_still = np.where(a_day() < 60, 0.2, a_day())
    forecaster = HoltWinters(DAY, seasonal="multiplicative").fit(
        np.random.default_rng(3).poisson(np.tile(night_is_still, 8)).astype(float)
    )
    noon = means(forecaster)[24]
    for _ in range(6):  # at midnight, six counts of 3 where 0.2 are expected
        forecaster.update(3.0)
    assert means(forecaster)[24 - 6] < 1.35 * noon


def test_nothing_of_statsmodels_reaches_stderr():
    code = (
        "import numpy as np; from forecasting import HoltWinters\n"
        "for y in (np.zeros(60), np.ones(60), np.r_[1e15, np.zeros(59)], np.arange(60.0) % 6):\n"
        "    for s in ('additive', 'multiplicative'):\n"
        "        HoltWinters(6, seasonal=s).fit(y).forecast(12)\n"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((1,), "season_length"), ((4, "linear"), "trend"), ((4, None, "none"), "seasonal")],
)
def test_impossible_parameters_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        HoltWinters(*arguments)


def test_a_history_without_a_known_count_is_refused():
    with pytest.raises(ValueError, match="no count is known"):
        HoltWinters(DAY).fit(np.full(3 * DAY, NAN))


def test_counts_are_not_taken_before_the_season_is_known():
    with pytest.raises(ValueError, match="call fit"):
        HoltWinters(DAY).update(3.0)
