"""Arrivals in bins of calendar time."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.scaling.arrival_history import ArrivalHistory


def test_bins_close_when_the_calendar_says_so():
    history = ArrivalHistory(interval=60.0, bins_max=10)
    closed = [history.add(5.0, 10.0, end_wall_time=600.0 + 10.0 * k) for k in range(1, 8)]
    assert closed == [[], [], [], [], [], [], [30.0]]


def test_an_interval_over_a_boundary_is_shared_out():
    history = ArrivalHistory(interval=60.0, bins_max=10)
    history.add(50.0, 50.0, end_wall_time=50.0)
    assert history.add(20.0, 20.0, end_wall_time=70.0) == [60.0]
    assert history.add(50.0, 50.0, end_wall_time=120.0) == []
    assert history.add(1.0, 1.0, end_wall_time=121.0) == [60.0]


def test_a_hole_is_missing_and_not_zero():
    history = ArrivalHistory(interval=60.0, bins_max=10)
    history.add(60.0, 60.0, end_wall_time=60.0)
    closed = history.add(10.0, 10.0, end_wall_time=250.0)
    assert closed[0] == 60.0
    assert [isnan(count) for count in closed[1:]] == [True, True, True]


def test_a_bin_watched_nearly_whole_is_scaled_up():
    history = ArrivalHistory(interval=60.0, bins_max=10)
    history.add(57.0, 57.0, end_wall_time=60.0)
    assert history.add(1.0, 1.0, end_wall_time=61.0) == [pytest.approx(60.0)]


def test_long_intervals_fill_many_bins_and_the_oldest_are_forgotten():
    history = ArrivalHistory(interval=60.0, bins_max=3)
    history.add(600.0, 600.0, end_wall_time=600.0)
    history.add(0.0, 1.0, end_wall_time=601.0)
    assert history.counts() == pytest.approx(np.full(3, 60.0))
    assert history.open_bin == 10


@given(
    counts=st.lists(st.integers(0, 1000), min_size=1, max_size=50),
    length=st.floats(1.0, 200.0),
    offset=st.floats(0.0, 59.0),
)
def test_no_arrival_is_lost_or_invented(counts, length, offset):
    history = ArrivalHistory(interval=60.0, bins_max=10_000)
    wall_time = 6000.0 + offset
    closed = []
    for count in counts:
        wall_time += length
        closed += history.add(count, length, wall_time)
    whole = [c for c in closed[1:] if not isnan(c)]  # the first may have begun in the middle
    assert sum(whole) <= sum(counts) * (1 + 1e-9) + 1e-9
    assert all(not isnan(c) for c in closed[1:])
