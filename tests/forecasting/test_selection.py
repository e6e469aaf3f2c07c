"""Selection: the better one wins, the simpler one if it is no worse; and it says why."""

import dataclasses
import math

import numpy as np
import pytest

from forecasting import HoltWinters, Level, Persistence, SeasonalNaive, choose

DAY = 24


def candidates():
    return {
        "persistence": Persistence(),
        "seasonal naive": SeasonalNaive(DAY),
        "Holt-Winters": HoltWinters(DAY),
    }


def days(count):
    shape = 500 - 450 * np.cos(np.arange(DAY) / DAY * 2 * np.pi)
    return np.random.default_rng(0).poisson(np.tile(shape, count)).astype(float)


def test_a_daily_shape_is_for_holt_winters():
    selection = choose(candidates(), days(15), horizon=2)
    assert selection.name == "Holt-Winters"
    assert set(selection.losses) == set(candidates())
    assert str(selection) == selection.reason
    assert "less than seasonal naive, the best naive one" in selection.reason


def test_a_random_walk_is_for_persistence_and_the_selection_says_so():
    walk = np.abs(1e4 + np.cumsum(np.random.default_rng(1).normal(0, 300, 15 * DAY)))
    selection = choose(candidates(), walk, horizon=1)
    assert selection.name == "persistence"
    assert "naive" in selection.reason or "not worth its trouble" in selection.reason


def test_of_equals_the_naive_one_wins():
    selection = choose(candidates(), np.full(5 * DAY, 100.0), horizon=1)
    assert selection.name in ("persistence", "seasonal naive")


def test_a_little_better_than_naive_is_not_enough():
    # Levels differ little on noise about a constant.
    counts = np.random.default_rng(2).poisson(100, 10 * DAY).astype(float)
    both = {"level": Level(half_life=20.0), "Holt-Winters": HoltWinters(DAY)}
    assert choose(both, counts, horizon=1).name == "level"


def test_one_that_cannot_be_fitted_is_left_out_and_named():
    selection = choose(candidates(), days(1), horizon=1)
    assert selection.name == "persistence"
    assert "not judged: seasonal naive: need a season of 24 counts" in selection.reason
    assert "Holt-Winters" not in selection.losses


def test_there_is_always_a_naive_one_to_fall_back_to():
    with pytest.raises(ValueError, match="naive candidate"):
        choose({"Holt-Winters": HoltWinters(DAY)}, days(5), horizon=1)


@pytest.mark.parametrize("history", [np.array([]), np.array([3.0]), np.full(60, math.nan)])
def test_nothing_is_chosen_on_nothing(history):
    with pytest.raises(ValueError, match="no candidate can be judged"):
        choose(candidates(), history, horizon=1)


def test_a_horizon_has_at_least_one_step():
    with pytest.raises(ValueError, match="horizon"):
        choose(candidates(), days(3), horizon=0)


def test_a_selection_is_a_value():
    selection = choose(candidates(), days(3), horizon=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        selection.name = "another"
