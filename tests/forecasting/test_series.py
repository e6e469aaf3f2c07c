"""Series: marks are kept, bins with a hole are holes."""

import math

import numpy as np
import pytest

from forecasting import Series

NAN = math.nan


def test_counts_join_into_wider_bins():
    minutes = Series.from_counts([1, 2, 3, 4, 5], interval=60.0, start=1000.0)
    pairs = minutes.resample(120.0)
    assert pairs.values.tolist() == [3.0, 7.0]  # the fifth minute fills no bin
    assert (pairs.interval, pairs.start, pairs.end) == (120.0, 1000.0, 1240.0)


def test_a_bin_with_any_missing_part_is_missing_and_not_a_trough():
    minutes = Series.from_counts([5, 5, 5, 0, 5, 5], interval=60.0, missing=[0, 0, 0, 1, 0, 0])
    assert minutes.resample(120.0).values.tolist() == pytest.approx([10.0, NAN, 10.0], nan_ok=True)


def test_a_zero_is_a_count():
    assert Series.from_counts([0, 0], interval=60.0).resample(120.0).values.tolist() == [0.0]


def test_the_values_are_the_series_own():
    given = np.array([1.0, 2.0])
    series = Series(given, interval=1.0)
    given[0] = 9.0
    assert series.values[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series.values[0] = 9.0


@pytest.mark.parametrize("interval", [90.0, 30.0, 0.0, -60.0, math.inf])
def test_counts_cannot_be_split(interval):
    with pytest.raises(ValueError, match="whole multiple"):
        Series.from_counts([1, 2, 3], interval=60.0).resample(interval)


@pytest.mark.parametrize(
    ("values", "interval", "match"),
    [
        ([1.0, -2.0], 60.0, "index 1"),
        ([math.inf], 60.0, "index 0"),
        ([[1.0]], 60.0, "one dimension"),
        ([1.0], 0.0, "interval"),
        ([1.0], NAN, "interval"),
    ],
)
def test_what_is_no_series_is_refused(values, interval, match):
    with pytest.raises(ValueError, match=match):
        Series(np.array(values), interval)


def test_one_mark_per_count():
    with pytest.raises(ValueError, match="one mark per count"):
        Series.from_counts([1, 2, 3], interval=1.0, missing=[True])
