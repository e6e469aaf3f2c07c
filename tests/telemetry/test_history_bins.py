"""Recorded intervals onto an even grid: gaps are not zeros, and nothing is counted twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.telemetry.history_bins import bin_arrivals

NAN = float("nan")


def binned(rows, *, interval, since, until):
    starts, lengths, arrivals = np.array(rows, dtype=float).reshape(-1, 3).T
    return bin_arrivals(starts, lengths, arrivals, interval=interval, since=since, until=until)


def test_intervals_on_the_grid_are_added_up():
    rows = [(0, 10, 1), (10, 10, 2), (20, 10, 3), (30, 10, 4)]
    np.testing.assert_allclose(binned(rows, interval=20, since=0, until=40), [3, 7])


def test_an_interval_across_an_edge_is_shared_by_the_time_on_each_side():
    rows = [(-5, 10, 4), (5, 10, 10), (15, 10, 0)]
    np.testing.assert_allclose(binned(rows, interval=10, since=0, until=20), [7, 5])


def test_a_bin_that_was_not_fully_observed_is_unknown_and_an_idle_one_is_zero():
    rows = [(0, 10, 0), (10, 5, 7), (20, 10, 3)]
    np.testing.assert_allclose(binned(rows, interval=10, since=-10, until=40), [NAN, 0, NAN, 3, NAN])


def test_the_slivers_that_clock_slew_leaves_do_not_bias_the_count():
    rows = [(0, 9.95, 199), (10, 9.95, 199)]
    np.testing.assert_allclose(binned(rows, interval=20, since=0, until=20), [400])


def test_of_minutes_lived_twice_the_first_telling_counts():
    rows = [(0, 60, 6), (60, 60, 6), (30, 60, 60), (120, 60, 6)]
    rows.sort()
    np.testing.assert_allclose(binned(rows, interval=60, since=0, until=180), [6, 33, 6])


def test_only_whole_bins_are_told_and_none_where_there_is_no_time():
    rows = [(0, 100, 100)]
    assert len(binned(rows, interval=10, since=0, until=39)) == 3
    assert len(binned(rows, interval=10, since=0, until=-5)) == 0
    np.testing.assert_array_equal(binned([], interval=10, since=0, until=30), [NAN] * 3)


def test_a_bin_of_no_length_is_a_broken_contract():
    with pytest.raises(ValueError, match="interval > 0, got 0"):
        binned([], interval=0, since=0, until=1)


@given(
    gaps=st.lists(st.floats(0, 5), min_size=1, max_size=20),
    counts=st.lists(st.integers(0, 1000), min_size=20, max_size=20),
)
def test_no_arrival_is_lost_or_invented_whatever_the_gaps(gaps, counts):
    rows, time = [], 0.0
    for gap, count in zip(gaps, counts, strict=False):
        rows.append((time + gap, 10.0, count))
        time += gap + 10.0
    one_bin = binned(rows, interval=10.0, since=rows[-1][0], until=rows[-1][0] + 10.0 + 1e-6)
    assert one_bin == pytest.approx([counts[len(rows) - 1]], abs=1e-6)
    coarse = binned(rows, interval=2.5, since=0.0, until=time + 2.5)
    assert np.nansum(coarse) <= sum(counts[: len(rows)]) * (1 + 0.02) + 1e-6
    assert not (coarse < 0).any()
