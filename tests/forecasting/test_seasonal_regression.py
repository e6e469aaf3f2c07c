"""Seasonal regression: what it finds, and what live traffic does to it."""

import math

import numpy as np
import pytest

from forecasting import SeasonalRegression, Series
from forecasting.season_table import COLUMNS
from forecasting.seasonal_features import AHEAD, NOW, features, unfolded, weighted

NAN = math.nan
DAY = 48
MONDAY = float(np.datetime64("2025-01-06T00:00", "s").astype(int))


def a_day(peak=400.0, n=DAY):
    return peak * (0.55 - 0.45 * np.cos(np.arange(n) / n * 2 * np.pi))


def days(count, peak=400.0, seed=0):
    return np.random.default_rng(seed).poisson(np.tile(a_day(peak), count)).astype(float)


def weeks(count, weekend=0.3, seed=0):
    shape = np.concatenate([a_day() * (weekend if day in (5, 6) else 1.0) for day in range(7)])
    return np.random.default_rng(seed).poisson(np.tile(shape, count)).astype(float)


def points(forecaster, horizon=DAY):
    return np.array([each.quantile(0.5) for each in forecaster.forecast(horizon)])


def live(forecaster, counts):
    for count in counts:
        forecaster.update(count)
    return forecaster


def test_weights_of_cells_do_what_coefficients_do_to_features():
    rng = np.random.default_rng(0)
    cells, now = rng.uniform(1, 9, (21, COLUMNS)), rng.uniform(1, 9, NOW + 1)
    rows, coefficients = np.array([0, 7, 20]), rng.normal(size=(3, NOW + AHEAD))
    offsets, regressors = features(cells, rows, now)
    expected = offsets + (regressors * coefficients).sum(axis=1)
    assert weighted(unfolded(coefficients), cells, rows, now) == pytest.approx(expected)


def test_a_clean_season_is_forecast_with_little_more_than_poisson_noise():
    forecaster = SeasonalRegression(DAY).fit(days(20))
    assert points(forecaster) == pytest.approx(a_day(), rel=0.12, abs=10)
    at_noon = forecaster.forecast(25)[-1]
    assert at_noon.variance < 2 * at_noon.mean


def test_weekends_are_known_from_the_week_without_a_calendar():
    forecaster = SeasonalRegression(DAY).fit(weeks(4)[: -2 * DAY])  # ends on a Friday
    saturday, sunday, monday = points(forecaster, 3 * DAY).reshape(3, DAY).sum(axis=1)
    assert saturday == pytest.approx(0.3 * monday, rel=0.35)
    assert sunday == pytest.approx(0.3 * monday, rel=0.35)


def test_the_second_sunday_is_known_from_saturdays_if_the_calendar_is():
    two_weeks = weeks(2)[: 13 * DAY]
    dated = SeasonalRegression(DAY).fit(Series(two_weeks, 1800.0, MONDAY))
    assert points(dated).sum() == pytest.approx(0.3 * a_day().sum(), rel=0.25)


def test_the_day_follows_the_wall_clock_when_clocks_change():
    hours = np.arange(21 * 24)
    start = float(np.datetime64("2025-03-12T23:00", "s").astype(int))  # 0:00 in Berlin; 30 March is day 18
    local = (hours + (hours >= 17 * 24 + 2)) % 24
    counts = np.where((local >= 8) & (local < 18), 1000.0, 100.0)
    before = 17 * 24 + 4
    berlin = SeasonalRegression(24, "Europe/Berlin").fit(Series(counts[:before], 3600.0, start))
    utc = SeasonalRegression(24).fit(Series(counts[:before], 3600.0, start))
    ahead = counts[before : before + 12]
    assert np.abs(points(berlin, 12) - ahead).max() < 50
    assert np.abs(points(utc, 12) - ahead).max() > 500


@pytest.mark.parametrize("n", [1, 5, DAY, int(1.4 * DAY), 2 * DAY])
def test_less_than_a_season_is_enough_to_say_something(n):
    forecaster = SeasonalRegression(DAY).fit(np.full(n, 100.0))
    assert points(forecaster, 5) == pytest.approx([100] * 5, rel=0.05)


def test_a_spike_is_not_repeated_tomorrow():
    clean, spiked = days(14), days(14)
    spiked[13 * DAY + 20] *= 10
    calm, upset = (points(SeasonalRegression(DAY).fit(each)) for each in (clean, spiked))
    assert upset[20] < 1.25 * calm[20]
    assert upset.sum() < 1.1 * calm.sum()


def test_a_spike_that_is_met_live_is_not_repeated_either():
    forecaster = live(SeasonalRegression(DAY).fit(days(14)), [*days(1, seed=1)[:20], 4000.0])
    assert points(forecaster, 3) == pytest.approx(a_day()[21:24], rel=0.35)
    assert points(forecaster)[47] == pytest.approx(a_day()[20], rel=0.25)


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_a_level_shift_is_followed_within_an_hour_of_five_minutes(factor):
    forecaster = SeasonalRegression(DAY).fit(days(14))
    live(forecaster, days(1, seed=1)[:20])
    live(forecaster, days(1, peak=400 * factor, seed=2)[20:32])
    assert points(forecaster, 6) == pytest.approx(a_day(400 * factor)[32:38], rel=0.25)


def test_a_fit_just_after_a_level_shift_keeps_following_it():
    shifted = np.concatenate((days(14), days(1, seed=1)[:20], days(1, peak=1200.0, seed=2)[20:32]))
    assert points(SeasonalRegression(DAY).fit(shifted), 6) == pytest.approx(a_day(1200.0)[32:38], rel=0.25)


def test_traffic_that_dies_leaves_no_ghost_of_the_day():
    forecaster = live(SeasonalRegression(DAY).fit(days(14)), np.zeros(24))
    assert points(forecaster, 24).max() < 10
    assert points(SeasonalRegression(DAY).fit(np.concatenate((days(14), np.zeros(24)))), 24).max() < 10


def test_traffic_that_comes_back_is_followed():
    forecaster = SeasonalRegression(DAY).fit(np.concatenate((days(7), np.zeros(5 * DAY))))
    live(forecaster, days(1)[20:32])
    assert points(forecaster, 3) == pytest.approx(a_day()[32:35], rel=0.35)


def test_a_missing_day_is_not_a_trough():
    whole, holed = days(14), days(14)
    holed[10 * DAY : 11 * DAY] = NAN
    holed[13 * DAY + 5 : 13 * DAY + 20] = NAN
    for history in (whole, holed):
        assert points(SeasonalRegression(DAY).fit(history)) == pytest.approx(a_day(), rel=0.15, abs=12)


def test_a_history_that_begins_with_a_gap_is_begun_where_it_is_known():
    later = Series(np.concatenate((np.full(3 * DAY, NAN), days(14))), 1800.0, MONDAY - 3 * 86_400)
    whole = Series(days(14), 1800.0, MONDAY)
    said = [points(SeasonalRegression(DAY).fit(history)) for history in (later, whole)]
    assert said[0] == pytest.approx(said[1], rel=0.05)


def test_intervals_widen_while_counts_are_missing():
    forecaster = SeasonalRegression(DAY).fit(
        np.abs(np.cumsum(np.random.default_rng(5).normal(0, 30, 700))) + 500
    )
    before = forecaster.at(1).variance
    assert live(forecaster, [NAN] * 20).at(1).variance > 2 * before


def test_what_is_learned_after_a_restart_in_another_zone_is_refused_by_name():
    with pytest.raises(ValueError, match="no time zone is called"):
        SeasonalRegression(DAY, zone="Mars")


@pytest.mark.parametrize(
    "history",
    [
        np.zeros(5 * DAY),
        np.tile([0.0] * (DAY - 1) + [500.0], 5),
        np.concatenate((days(4), np.zeros(2 * DAY))),
        np.tile(a_day(), 8) * np.linspace(1, 0, 8 * DAY),
        np.full(3 * DAY, 1e15),
        np.where(np.arange(5 * DAY) % 3 == 0, days(5), NAN),
        np.concatenate(([3.0], np.full(5 * DAY, NAN))),
    ],
    ids=["zeros", "one an evening", "dead", "falling to 0", "huge", "holes", "one known"],
)
def test_forecasts_of_strange_histories_are_finite_and_within_what_was_seen(history):
    said = points(SeasonalRegression(DAY).fit(history), 3 * DAY)
    assert np.all(np.isfinite(said)) and np.all(said >= 0) and said.max() <= 4 * np.nanmax(history) + 10


def test_a_history_without_a_known_count_is_refused():
    with pytest.raises(ValueError, match="no count is known"):
        SeasonalRegression(DAY).fit(np.full(3 * DAY, NAN))


def test_counts_are_not_taken_before_a_history():
    with pytest.raises(ValueError, match="call fit"):
        SeasonalRegression(DAY).update(3.0)
