"""What was wanted over the last while."""

import pytest

from autoscaler.scaling.window import RecentQuantile


def wanted(values: list[int], length: float = 300.0, quantile: float = 0.75) -> RecentQuantile:
    window = RecentQuantile(length, quantile)
    for place, value in enumerate(values):
        window.add(value, now=10.0 * place)
    return window


def test_f9_neither_a_jitter_nor_the_last_sample_decides():
    assert wanted([10, 10, 15, 10, 10, 5]).value() == 10


def test_what_is_older_than_the_window_is_forgotten():
    window = wanted([9, 9, 9])
    window.add(4, now=321.0)
    assert window.value() == 4


def test_a_value_is_always_one_that_was_seen():
    assert wanted([3, 8], quantile=0.5).value() == 3


def test_an_empty_window_has_no_value():
    with pytest.raises(ValueError, match="no value"):
        RecentQuantile(300.0, 0.75).value()


@pytest.mark.parametrize(("length", "quantile"), [(-1.0, 0.5), (1.0, 1.5)])
def test_impossible_windows_are_refused(length, quantile):
    with pytest.raises(ValueError, match="need length"):
        RecentQuantile(length, quantile)
