"""A signal is seen as late as its delay, and smoothed over its window."""

import pytest

from autoscaler.replay.policies.signals import Lagged, SlidingMean, concurrency
from tests.fakes.seen_by_peers import seen


def test_concurrency_counts_those_who_wait():
    assert concurrency(seen(busy=3.5, waiting=4)) == 7.5


def test_a_signal_is_not_seen_before_its_delay():
    signal = Lagged(30.0)
    assert [
        signal.put(value, now) for value, now in [("a", 15.0), ("b", 30.0), ("c", 45.0), ("d", 60.0)]
    ] == [
        None,
        None,
        "a",
        "b",
    ]


def test_without_delay_it_is_seen_at_once():
    assert Lagged(0.0).put(7, 15.0) == 7


def test_the_mean_weighs_by_length_and_forgets_what_is_older_than_its_window():
    mean = SlidingMean(60.0)
    assert mean.put(1.0, 20.0, 20.0) == 1.0
    assert mean.put(4.0, 40.0, 60.0) == pytest.approx(3.0)
    assert mean.put(10.0, 20.0, 80.0) == pytest.approx(6.0)  # the first 20 s are out of the window
