"""Known events: outside of what is learned, inside of what is said."""

import json

import numpy as np
import pytest

from forecasting import Event, Level, Schedule, SeasonalNaive, Series, WithEvents
from forecasting.forecaster import restore

HOUR = 3600.0
DAY = 24 * HOUR
MONDAY = float(np.datetime64("2025-01-06T00:00", "s").astype(int))


def hours(days, count=100.0):
    return Series(np.full(24 * days, count), HOUR, MONDAY)


def means(forecaster, horizon):
    return [each.mean for each in forecaster.forecast(horizon)]


def test_a_launch_multiplies_what_is_forecast_and_nothing_else():
    launch = Event(MONDAY + 2 * DAY + HOUR, MONDAY + 2 * DAY + 3 * HOUR, factor=3.0)
    forecaster = WithEvents(Level(), [launch]).fit(hours(2))
    assert means(forecaster, 4) == pytest.approx([100, 300, 300, 100])


def test_a_launch_that_came_as_expected_is_not_learned():
    launch = Event(MONDAY + 2 * DAY, MONDAY + 2 * DAY + 2 * HOUR, factor=3.0)
    forecaster = WithEvents(Level(), [launch]).fit(hours(2))
    for count in (300.0, 300.0):
        forecaster.update(count)
    assert means(forecaster, 1) == pytest.approx([100])


def test_a_launch_in_the_history_is_not_part_of_the_season():
    counts = np.full(48, 100.0)
    counts[30:32] = 300.0
    launch = Event(MONDAY + 30 * HOUR, MONDAY + 32 * HOUR, factor=3.0)
    forecaster = WithEvents(SeasonalNaive(24), [launch]).fit(Series(counts, HOUR, MONDAY))
    assert means(forecaster, 24) == pytest.approx([100] * 24)


def test_half_an_hour_of_an_event_is_half_of_its_effect():
    launch = Event(MONDAY + 2 * DAY, MONDAY + 2 * DAY + HOUR / 2, factor=3.0)
    assert means(WithEvents(Level(), [launch]).fit(hours(2)), 1) == pytest.approx([200])


def test_a_schedule_comes_again_on_its_days():
    mornings = Schedule("0 9 * * 1-5", duration=2 * HOUR, factor=2.0)
    forecaster = WithEvents(Level(), [mornings]).fit(hours(4))  # Friday, 0:00
    doubled = np.flatnonzero(np.array(means(forecaster, 96)) > 150)
    assert doubled.tolist() == [9, 10, 72 + 9, 72 + 10]  # and Monday


def test_factors_of_several_events_multiply():
    both = [Event(MONDAY, MONDAY + 9 * DAY, 2.0), Event(MONDAY + 2 * DAY, MONDAY + 3 * DAY, 3.0)]
    assert means(WithEvents(Level(), both).fit(hours(2)), 1) == pytest.approx([300])


def test_the_distribution_is_scaled_as_a_whole():
    plain = Level().fit(hours(2).values).at(1)
    scaled = WithEvents(Level(), [Event(MONDAY, MONDAY + 9 * DAY, 2.0)]).fit(hours(2)).forecast(1)[0]
    assert scaled.variance > 0 and scaled.sf(scaled.quantile(0.9)) <= 0.1
    assert scaled.quantile(0.5) == pytest.approx(plain.quantile(0.5), rel=0.1)
    assert scaled.sample(np.random.default_rng(0), 500).mean() == pytest.approx(100, rel=0.05)
    assert scaled.cdf(scaled.quantile(0.9)) >= 0.9


def test_a_restored_one_says_the_same():
    events = [Schedule("0 9 * * 1-5", HOUR, 2.0), Event(MONDAY, MONDAY + DAY, 3.0)]
    forecaster = WithEvents(SeasonalNaive(24), events).fit(hours(3))
    restored = restore(json.loads(json.dumps(forecaster.to_state(), allow_nan=False)))
    for each in (forecaster, restored):
        each.update(80.0)
    assert means(restored, 30) == means(forecaster, 30)


def test_an_array_has_no_dates():
    with pytest.raises(ValueError, match="need a Series"):
        WithEvents(Level(), []).fit(np.ones(48))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Event(2.0, 1.0, 3.0), "end after its start"),
        (lambda: Event(1.0, 2.0, 0.0), "factor > 0"),
        (lambda: Schedule("0 9 * * *", 0.0, 2.0), "duration"),
        (lambda: Schedule("never", 60.0, 2.0), "five fields"),
    ],
)
def test_impossible_events_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()
