"""What a series holds: its gaps, its rates, and in which intervals it is looked at."""

import numpy as np
import pytest

from autoscaler.outlook.found import Gap, found_in, interval_for
from forecasting.series import Series

NAN = float("nan")


def test_gaps_are_stretches_without_a_count():
    found = found_in(Series(np.array([NAN, 2.0, 4.0, NAN, NAN, 6.0]), 60.0))
    assert found.gaps == (Gap(0.0, 60.0), Gap(180.0, 120.0))
    assert (found.missing, found.requests, found.rate_mean, found.rate_peak) == (3, 12.0, 4 / 60, 0.1)


def test_relative_times_are_no_calendar():
    assert not found_in(Series(np.ones(3), 60.0, 0.0)).has_calendar
    assert found_in(Series(np.ones(3), 60.0, 1.7e9)).has_calendar


def test_a_series_that_nobody_counted_is_refused():
    with pytest.raises(ValueError, match="at least one known count"):
        found_in(Series(np.full(10, NAN), 60.0))


@pytest.mark.parametrize(
    "span, interval, looked_at",
    [
        (28 * 86_400, 60.0, 300.0),
        (28 * 86_400, 300.0, 300.0),
        (28 * 86_400, 1800.0, 1800.0),
        (3600, 1.0, 30.0),
        (60, 1.0, 1.0),
        (28 * 86_400, 7.0, 7.0),  # five minutes are no whole multiple
        (86_400, 0.5, 300.0),
    ],
)
def test_demand_is_looked_at_in_five_minutes_or_finer_if_that_is_too_few(span, interval, looked_at):
    assert interval_for(span, interval) == looked_at
