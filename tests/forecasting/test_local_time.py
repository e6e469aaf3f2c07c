"""The clock on the wall, across the days on which it changes."""

import numpy as np
import pytest

from forecasting.local_time import DAY, WEEK, utc_offset

HOUR = 3600.0


def at(moment):
    """[s since the epoch] of a time in UTC."""
    return float(np.datetime64(moment, "s").astype(int))


@pytest.mark.parametrize(
    ("zone", "moment", "hours"),
    [
        ("UTC", "2025-07-01T12:00", 0),
        ("Europe/Berlin", "2025-01-15T12:00", 1),
        ("Europe/Berlin", "2025-07-15T12:00", 2),
        ("America/New_York", "2025-01-15T12:00", -5),
        ("Asia/Kolkata", "2025-01-15T12:00", 5.5),
    ],
)
def test_clocks_are_ahead_of_utc_as_the_zone_has_it(zone, moment, hours):
    assert utc_offset(zone, at(moment))[0] == hours * HOUR


def test_an_offset_is_known_to_hold_until_the_clocks_change():
    before = at("2025-03-28T01:00")  # in Berlin they change on 30 March, at 1:00 UTC
    assert utc_offset("Europe/Berlin", before) == (HOUR, pytest.approx(2 * DAY, abs=1))
    assert utc_offset("Europe/Berlin", before + 2 * DAY)[0] == 2 * HOUR


def test_an_offset_holds_for_a_week_at_most():
    assert utc_offset("Europe/Berlin", at("2025-01-15T12:00")) == (HOUR, WEEK)


def test_an_unknown_zone_is_refused_and_says_what_a_name_looks_like():
    with pytest.raises(ValueError, match="'Mars/Olympus'; need a name such as 'Europe/Berlin'"):
        utc_offset("Mars/Olympus", 0.0)
