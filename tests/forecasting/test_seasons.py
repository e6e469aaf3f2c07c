"""Seasons that people make are found, and nothing else is taken for one."""

import numpy as np
import pytest

from forecasting.seasons import DAY, WEEK, seasons
from forecasting.series import Series

HOUR = 3600.0


def hours(days: float, day: float = 0.0, weekend: float = 0.0, noise: float = 1.0, seed: int = 1) -> Series:
    """Hourly counts around 100: a wave of a day, quiet weekends, Poisson noise."""
    t = np.arange(round(24 * days))
    rate = 100 * (1 + day * np.sin(2 * np.pi * t / 24)) * (1 - weekend * (t // 24 % 7 >= 5))
    return Series(np.random.default_rng(seed).poisson(rate * noise) / noise, HOUR)


def periods(series: Series) -> list[float]:
    return [season.period for season in seasons(series)]


@pytest.mark.parametrize(
    "series, found",
    [
        (hours(14, day=0.5), [DAY]),
        (hours(28, day=0.5, weekend=0.4), [DAY, WEEK]),
        (hours(28, weekend=0.5), [WEEK]),
        (hours(28), []),
        (hours(1.9, day=0.5), []),  # not seen twice
        (hours(13, day=0.5, weekend=0.4), [DAY]),
    ],
)
def test_a_day_and_a_week_are_found_if_they_are_there(series, found):
    assert periods(series) == found


def test_a_season_says_how_strong_it_is():
    strong, weak = (seasons(hours(14, day=swing))[0] for swing in (0.8, 0.12))
    assert strong.correlation > weak.correlation > 0.2
    assert 1.0 >= strong.explained > 0.9 > weak.explained > 0.2


def test_two_peaks_a_day_are_still_one_day():
    t = np.arange(24 * 14)
    rate = 100 + 60 * np.exp(-((t % 24 - 8) ** 2) / 4) + 80 * np.exp(-((t % 24 - 18) ** 2) / 4)
    assert periods(Series(np.random.default_rng(1).poisson(rate), HOUR)) == [DAY]


@pytest.mark.parametrize("seed", range(5))
def test_what_merely_wanders_has_no_season(seed):
    steps = np.random.default_rng(seed).normal(0, 0.02, 288 * 10)
    assert periods(Series(100 * np.exp(np.cumsum(steps)), 300.0)) == []


def test_spikes_and_gaps_neither_hide_a_season_nor_make_one():
    values = hours(21, day=0.5).values.copy()
    values[::97] *= 1000
    values[100:150] = np.nan
    assert periods(Series(values, HOUR)) == [DAY]
    values = hours(21).values.copy()
    values[24 * 5], values[24 * 6] = 1e6, 1e6
    assert periods(Series(values, HOUR)) == []


@pytest.mark.parametrize("values", [[], [5.0], [np.nan] * 100, [3.0] * 1000, [0.0] * 1000])
def test_where_nothing_is_to_be_seen_nothing_is_found(values):
    assert seasons(Series(np.array(values), HOUR)) == ()


def test_an_interval_that_does_not_divide_a_day_has_no_season_of_a_day():
    assert seasons(Series(hours(40, day=0.5).values, 5000.0)) == ()


def test_three_counts_a_day_have_no_shape():
    assert seasons(Series(np.tile([1.0, 5.0, 9.0], 50), 8 * HOUR)) == ()
