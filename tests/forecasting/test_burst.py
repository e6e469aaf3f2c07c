"""Bursts: noticed with the first count that cannot be chance, over after a calm window."""

import math

import numpy as np
import pytest

from forecasting import Burst, NegativeBinomial

USUAL = NegativeBinomial(100.0, 150.0)


def test_counts_as_predicted_are_calm():
    burst = Burst(window=60.0)
    counts = USUAL.sample(np.random.default_rng(0), 500)
    assert not any(burst.update(count, USUAL, now=10.0 * i) for i, count in enumerate(counts))
    assert repr(burst) == "<Burst calm>"


def test_a_burst_is_noticed_with_its_first_count_and_lasts_until_a_full_window_is_calm():
    burst = Burst(window=60.0)
    said = [burst.update(count, USUAL, now) for count, now in [(300, 10), (100, 20), (300, 30), (100, 89)]]
    assert said == [1, 1, 1, 1]
    assert burst.update(100, USUAL, now=90) == 0


def test_far_less_than_predicted_is_noticed_too():
    burst = Burst()
    assert burst.update(30, USUAL, now=0.0) == -1
    assert repr(burst) == "<Burst below>"


def test_a_missing_count_is_no_surprise_and_no_calm_count_either():
    burst = Burst(window=60.0)
    assert burst.update(math.nan, USUAL, now=0.0) == 0
    burst.update(300, USUAL, now=10.0)
    assert burst.update(math.nan, USUAL, now=20.0) == 1


def test_an_index_of_zeros_is_not_surprised_by_zero():
    assert Burst().update(0, NegativeBinomial(0.0, 0.0), now=0.0) == 0


def test_a_restored_burst_goes_on():
    burst = Burst(window=60.0)
    burst.update(300, USUAL, now=10.0)
    restored = Burst.from_state(burst.to_state())
    assert restored.update(100, USUAL, now=69.0) == 1 and restored.update(100, USUAL, now=70.0) == 0


@pytest.mark.parametrize(("arguments", "match"), [((0.0,), "window"), ((60.0, 0.6), "surprise")])
def test_impossible_parameters_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Burst(*arguments)
