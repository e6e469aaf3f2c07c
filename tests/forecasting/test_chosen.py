"""The forecaster that chooses itself: what serves, and why."""

import json

import numpy as np
import pytest

from forecasting import Chosen, Series

DAY = 24


def days(count, seed=0):
    shape = 500 - 450 * np.cos(np.arange(DAY) / DAY * 2 * np.pi)
    return np.random.default_rng(seed).poisson(np.tile(shape, count)).astype(float)


def test_a_daily_shape_is_for_the_seasonal_regression_and_it_says_by_how_much():
    chosen = Chosen(DAY, horizon=2).fit(days(15))
    assert chosen.name_ == "seasonal regression"
    assert "less than" in chosen.reason_ and chosen.reason_ in repr(chosen)
    assert set(chosen.losses_) == set(chosen.candidates())


def test_a_naive_one_that_is_clearly_better_serves_instead():
    # Every day has another shape, and then comes again: only the same time last week knows it.
    rng = np.random.default_rng(2)
    fortnight = np.tile(rng.permutation(np.repeat([10.0, 5000.0], 7 * DAY // 2)), 3)
    chosen = Chosen(DAY, horizon=1).fit(fortnight)
    assert chosen.name_ == "seasonal naive, week"
    assert "seasonal naive, week: loss" in chosen.reason_


def test_a_naive_one_that_is_a_little_better_does_not():
    walk = np.abs(1e4 + np.cumsum(np.random.default_rng(1).normal(0, 300, 60 * DAY)))
    chosen = Chosen(DAY).fit(walk)
    assert chosen.losses_["persistence"] < chosen.losses_["seasonal regression"]
    assert "persistence, which it holds within, is not clearly better" in chosen.reason_


@pytest.mark.parametrize("history", [[], [5.0], [np.nan] * 30, [np.nan] * 10 + [3.0]])
def test_too_little_to_judge_by_is_served_by_a_level(history):
    chosen = Chosen(DAY).fit(np.array(history))
    assert chosen.name_ == "level" and "no candidate can be judged" in chosen.reason_
    chosen.update(7.0)
    assert chosen.forecast(1)[0].mean > 0


def test_the_choice_is_made_anew_at_each_fit():
    chosen = Chosen(DAY).fit(days(10))
    assert chosen.fit(np.full(1, 10.0)).name_ == "level"
    assert chosen.fit(days(10)).name_ == "seasonal regression"


def test_what_was_chosen_survives_a_restart():
    chosen = Chosen(DAY, zone="Europe/Berlin").fit(Series(days(10), 3600.0, 1.7e9 // 3600 * 3600))
    restored = Chosen.from_state(json.loads(json.dumps(chosen.to_state(), allow_nan=False)))
    assert (restored.name_, restored.reason_, restored.losses_) == (
        chosen.name_,
        chosen.reason_,
        chosen.losses_,
    )
    for each in (chosen, restored):
        each.update(400.0)
    assert restored.at(3).quantile(0.9) == chosen.forecast(3)[2].quantile(0.9)


@pytest.mark.parametrize(
    ("arguments", "match"), [((1,), "season_length"), ((24, 0), "horizon"), ((24, 1, "Here"), "zone")]
)
def test_impossible_parameters_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Chosen(*arguments)
