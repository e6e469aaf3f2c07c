"""From traffic of the past to a question, and to the day of a fleet of fixed size."""

from pathlib import Path

import numpy as np
import pytest

from autoscaler.plan.answer import answer
from autoscaler.plan.day import day_of
from autoscaler.plan.one_by_one import OneByOne
from autoscaler.plan.question import Question
from autoscaler.plan.traffic import arrival_scv, profile_of
from autoscaler.telemetry.traffic import Requests, Traffic
from forecasting.series import Series


def counts(values, interval: float, start: float = 0.0) -> Traffic:
    return Traffic(
        Path("s.csv"), "CSV of counts", Series(np.asarray(values, dtype=float), interval, start), 0
    )


def requests(arrivals, service_times=None, **more) -> Traffic:
    untold = np.full(len(arrivals), np.nan)
    times = untold if service_times is None else np.asarray(service_times, dtype=float)
    return Traffic(
        Path("r.csv"), "CSV of requests", Requests(np.asarray(arrivals), times, untold, untold, **more), 0
    )


def poisson(rate: float, span: float, seed: int = 1):
    rng = np.random.default_rng(seed)
    return np.sort(rng.random(rng.poisson(rate * span))) * span


def test_rates_are_taken_over_clock_hours_and_the_peak_over_any_sixty_minutes():
    minutes = np.full(240, 6.0)
    minutes[90:150] = 60.0  # from 1:30 to 2:30
    profile = profile_of(counts(minutes, 60.0))
    assert profile.hours.tolist() == pytest.approx([0.1, 0.55, 0.55, 0.1])
    assert (profile.rate_peak, profile.peak_start) == (1.0, 5400.0)
    assert profile.rate_mean == pytest.approx(minutes.mean() / 60)


def test_hours_begin_at_the_clock_of_the_file():
    half_past_nine_in_utc = 1752399000.0
    demand = requests(np.arange(0, 7200.0, 10.0), start=half_past_nine_in_utc, utc_offset=2 * 3600.0)
    profile = profile_of(demand)
    assert profile.first_hour == 11
    assert len(profile.hours) == 3
    assert np.nanmean(profile.hours) == pytest.approx(0.1)


def test_what_nobody_counted_is_left_out():
    minutes = np.full(120, 6.0)
    minutes[10:30] = np.nan
    profile = profile_of(counts(minutes, 60.0))
    assert profile.rate_mean == pytest.approx(0.1)
    assert profile.requests == 600
    assert "20 of 120 intervals are not known" in profile.notes[0]


def test_an_hour_of_which_most_is_unknown_has_no_rate():
    minutes = np.full(120, 6.0)
    minutes[:50] = np.nan
    assert np.isnan(profile_of(counts(minutes, 60.0)).hours).tolist() == [True, False]


def test_service_times_have_mean_and_scv():
    profile = profile_of(requests([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, np.nan, 2.0]))
    assert profile.service_time_mean == 2.0
    assert profile.service_scv == pytest.approx((2 / 3) / 4)


def test_service_times_beyond_the_formulas_are_said_to_be():
    times = np.ones(1000)
    times[0] = 1000.0
    profile = profile_of(requests(np.arange(1000.0), times))
    assert profile.service_scv == 10.0
    assert "more than the formulas take" in profile.notes[-1]


def test_less_than_an_hour_shows_no_peak():
    profile = profile_of(requests(poisson(2.0, 1800.0)))
    assert not profile.shows_hours
    assert profile.rate_peak == pytest.approx(profile.rate_mean)
    assert "a peak hour cannot be seen" in profile.notes[0]


@pytest.mark.parametrize("arrivals", [[0.0], [0.0, 0.0, 0.0]])
def test_nothing_can_be_told_of_one_moment(arrivals):
    with pytest.raises(ValueError, match="at least two requests"):
        profile_of(requests(arrivals))


# --- how bursty arrivals are


def test_poisson_arrivals_are_seen_to_be_poisson():
    scv, _ = arrival_scv(requests(poisson(2.0, 36_000.0)), service_time_mean=10.0, service_scv=1.0)
    assert scv == pytest.approx(1.0, abs=0.15)  # 60 blocks of 600 s: a deviation of 0.05


def test_the_shape_of_the_day_is_no_burst():
    # 24 hours between 0.4/s and 3.6/s: the variance of the counts over the day is far above their mean.
    rng = np.random.default_rng(2)
    seconds = rng.poisson(2.0 - 1.6 * np.cos(np.arange(86_400) / 86_400 * 2 * np.pi))
    assert seconds.reshape(-1, 600).sum(axis=1).var() > 100 * seconds.mean() * 600 / 10
    scv, _ = arrival_scv(counts(seconds, 1.0), service_time_mean=10.0, service_scv=1.0)
    assert scv == pytest.approx(1.0, abs=0.2)


def test_batches_of_arrivals_are_bursts():
    # Three at once, exponential service: z = 1 + (3 - 1) / 2, as of renewal arrivals with an SCV of 3.
    arrivals = np.repeat(poisson(0.5, 36_000.0), 3)
    scv, how = arrival_scv(requests(arrivals), service_time_mean=10.0, service_scv=1.0)
    assert scv == pytest.approx(3.0, abs=0.4)
    assert "(Poisson: 1)" in how


def test_regular_arrivals_are_smoother_than_poisson():
    scv, _ = arrival_scv(requests(np.arange(0, 36_000.0, 0.5)), service_time_mean=10.0, service_scv=1.0)
    assert scv == pytest.approx(0.0, abs=0.05)


def test_counts_that_are_longer_than_a_service_show_no_bursts():
    scv, how = arrival_scv(counts(np.full(100, 50.0), 60.0), service_time_mean=10.0, service_scv=1.0)
    assert scv == 1.0
    assert "60 s are too coarse to show bursts within a service of 10 s" in how


def test_few_requests_show_no_bursts():
    scv, how = arrival_scv(requests(poisson(0.01, 3600.0)), service_time_mean=10.0, service_scv=1.0)
    assert scv == 1.0
    assert "too few requests" in how


# --- a fixed size through the day


def test_a_fleet_for_the_peak_of_a_sine_is_less_than_half_busy():
    hour = np.arange(24)
    rates = 2.25 - 1.75 * np.cos(hour / 24 * 2 * np.pi)  # 5 to 40 erlangs of 10 s
    profile = profile_of(counts(np.repeat(rates, 60) * 60, 60.0))
    question = Question(profile.rate_peak, OneByOne(10.0))
    peak = answer(question).recommended.replicas
    mean = answer(Question(profile.rate_mean, OneByOne(10.0))).recommended.replicas
    day = day_of(profile, question, peak, mean)
    assert profile.rate_peak == pytest.approx(4.0)
    assert day.for_peak.utilization == pytest.approx(22.5 / peak)
    assert day.for_peak.utilization < 0.5
    assert day.for_peak.hours_missed == 0.0
    assert day.for_mean.hours_missed > 0.3
    assert day.for_mean.requests_missed > day.for_mean.hours_missed
    assert 0.3 < day.saved < 0.5
    assert day.needed[12] == peak
    exact = [answer(Question(rate, OneByOne(10.0))).needs.least for rate in rates]
    assert np.abs(day.needed - exact).max() <= 1


def test_many_days_are_averaged_by_the_hour():
    hours = np.tile(np.repeat([360.0, 3600.0], 12), 3)[6:]  # three days, the first from six on
    profile = profile_of(counts(hours, 3600.0, start=6 * 3600.0))
    day = day_of(profile, Question(1.0, OneByOne(10.0)), 15, 8)
    assert (day.first_hour, day.averaged_days) == (0, 3)
    assert day.rates.tolist() == pytest.approx([0.1] * 12 + [1.0] * 12)


def test_hours_without_requests_need_the_least_fleet():
    profile = profile_of(counts([0.0, 3600.0, 3600.0], 3600.0))
    day = day_of(profile, Question(1.0, OneByOne(10.0), replicas_min=2), 15, 12)
    assert day.needed.tolist() == [2.0, 15.0, 15.0]
    assert day.utilization.tolist() == pytest.approx([0.0, 10 / 15, 10 / 15])
