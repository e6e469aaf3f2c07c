"""The five fields of crontab."""

import numpy as np
import pytest

from forecasting.cron import Cron

WEEK = float(np.datetime64("2025-01-05T00:00", "s").astype(int))  # a Sunday


def named(fields, zone="UTC", days=7, start=WEEK):
    """The minutes of some days that `fields` name, as text."""
    moments = start + 60.0 * np.arange(days * 1440)
    times = moments[Cron(fields, zone).matches(moments)].astype(int).astype("datetime64[s]")
    return [str(time)[5:16] for time in times]


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ("0 9 * * 1", ["01-06T09:00"]),
        ("30 6,18 7 * *", ["01-07T06:30", "01-07T18:30"]),
        ("*/30 4 * * 6", ["01-11T04:00", "01-11T04:30"]),
        ("0 0 * * 7", ["01-05T00:00"]),
        ("0 0 * 2 *", []),
        ("5-7 3 8 1 *", ["01-08T03:05", "01-08T03:06", "01-08T03:07"]),
        ("10-20/5 3 8 * *", ["01-08T03:10", "01-08T03:15", "01-08T03:20"]),
        ("0 1 6 * 3", ["01-06T01:00", "01-08T01:00"]),  # two restricted days: either
    ],
)
def test_the_fields_name_these_minutes(fields, times):
    assert named(fields) == times


def test_fields_are_about_the_clock_of_the_zone():
    march = float(np.datetime64("2025-03-29T00:00", "s").astype(int))
    assert named("0 9 * * *", "Europe/Berlin", days=2, start=march) == ["03-29T08:00", "03-30T07:00"]


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ("0 9 * *", "need five fields"),
        ("60 9 * * *", "minute '60': need numbers from 0 to 59"),
        ("0 9-5 * * *", "hour '9-5'"),
        ("0 9 * * mon", "weekday 'mon'"),
        ("*/0 9 * * *", "minute"),
        ("0 9 0 * *", "day of month '0'"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(fields, match):
    with pytest.raises(ValueError, match=match):
        Cron(fields)
