"""Samples become requests per interval: no reset, gap or new process makes requests that never came."""

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.errors import UsageError
from autoscaler.telemetry.prometheus_counts import counts
from autoscaler.telemetry.prometheus_meaning import Kind, Meaning, Samples

COUNTER = Meaning(Kind.COUNTER, 0.0, "")


def series(*values: float | None) -> Samples:
    """Samples a minute; None where there is none."""
    places = [place for place, value in enumerate(values) if value is not None]
    return Samples(np.array(places), np.array([float(values[place]) for place in places]))


def counted(*lines: Samples, points: int, per_interval: int = 1, what: Meaning = COUNTER) -> list[float]:
    return counts(lines, points, 60.0, per_interval, what).tolist()


def same(found: list[float], expected: list[float]) -> bool:
    return np.allclose(found, expected, equal_nan=True)


def test_a_counter_counts_by_what_it_rises():
    assert counted(series(100, 103, 103, 110), points=4) == [3.0, 0.0, 7.0]


def test_after_a_reset_it_has_counted_from_zero():
    assert counted(series(100, 103, 4, 6), points=4) == [3.0, 4.0, 2.0]


def test_several_counters_are_added_each_with_its_own_resets():
    assert counted(series(0, 10, 2), series(1000, 1001, 1003), points=3) == [11.0, 4.0]


def test_where_all_are_silent_is_a_gap():
    both = series(0, 10, None, None, 40, 50), series(0, 1, None, None, 4, 5)
    assert same(counted(*both, points=6), [11.0, nan, nan, nan, 11.0])


def test_what_stands_still_just_before_a_gap_is_part_of_it():
    assert same(counted(series(0, 10, 20, 20, 20, None, 50), points=7), [10.0, 10.0, nan, nan, nan, nan])
    idle_for_long = series(*[0.0] * 10, None, 50)
    assert same(counted(idle_for_long, points=12), [*[0.0] * 4, *[nan] * 7])


def test_the_rise_of_one_that_was_silent_alone_is_spread_evenly():
    assert counted(series(0, 10, None, None, 40), series(0, 1, 2, 3, 4), points=5) == [11.0] * 4


def test_the_first_count_of_a_new_process_counts_and_an_old_one_newly_found_does_not():
    going_on = series(0, 50, 100, 150)
    assert counted(going_on, series(None, None, 30, 40), points=4) == [50.0, 80.0, 60.0]
    assert counted(going_on, series(None, None, 9000, 9010), points=4) == [50.0, 50.0, 60.0]


def test_the_first_count_of_all_is_no_increase():
    assert same(counted(series(None, 5, 7), points=3), [nan, 2.0])


def test_an_interval_is_known_if_all_of_it_is():
    assert same(counted(series(0, 1, 2, 3, None, 5, 6, 7, 8), points=9, per_interval=2), [2.0, nan, nan, 2.0])


RATE = Meaning(Kind.RATE, 0.0, "")


def test_a_rate_is_averaged_over_the_interval():
    assert counted(series(9, 1.0, 3.0, 0, 0), points=5, per_interval=2, what=RATE) == [240.0, 0.0]


def test_rates_of_several_are_added_and_where_none_is_is_a_gap():
    both = series(0, 1.0, None, 2.0), series(0, 0.5, None, None)
    assert same(counted(*both, points=4, what=RATE), [90.0, nan, 120.0])


def test_a_rate_over_a_whole_interval_is_that_at_its_end():
    over_two_minutes = Meaning(Kind.RATE, 120.0, "")
    assert counted(series(0, 9, 1.0, 9, 2.0), points=5, per_interval=2, what=over_two_minutes) == [
        120.0,
        240.0,
    ]


def test_a_count_over_a_longer_window_is_its_share():
    over_an_hour = Meaning(Kind.COUNT, 3600.0, "")
    assert counted(series(0, 600.0, 1200.0), points=3, what=over_an_hour) == [10.0, 20.0]


def test_less_than_nothing_cannot_come():
    with pytest.raises(UsageError, match="gives -3"):
        counted(series(0, -3), points=2, what=RATE)


@given(
    st.lists(st.lists(st.integers(0, 100), min_size=12, max_size=12), min_size=1, max_size=4),
    st.lists(st.integers(1, 11), max_size=1),
)
def test_a_reset_loses_nothing(arrivals, resets):
    lines = []
    for each in arrivals:
        value, values = 10_000.0, [10_000.0]
        for place, came in enumerate(each, start=1):
            value = (0.0 if place in resets else value) + came
            values.append(value)
        lines.append(series(*values))
    assert counted(*lines, points=13) == np.sum(arrivals, axis=0).tolist()
