"""The shape of past errors: kept evenly, scaled by load, doubted while few."""

import numpy as np
import pytest

from forecasting.past_errors import DOUBT_ERROR, PAST, PastErrors


def kept(errors, said, stride=1):
    past = PastErrors(1, stride)
    for error, point in zip(errors, np.broadcast_to(said, len(errors)), strict=True):
        if past.keeps_next:
            past.add(np.array([point]), np.ones(1), point + error)
        else:
            past.pass_over()
    return past


def quantile(deviations, weights, p):
    order = np.argsort(deviations)
    return deviations[order][np.searchsorted(np.cumsum(weights[order]) / weights.sum(), p)]


def test_without_errors_the_law_is_normal_and_wide():
    deviations, weights = PastErrors(1).law(0, 1e4, dispersion=1.0, relative=0.0, volatility=1.0)
    assert deviations @ weights == pytest.approx(0.0, abs=1e-6)
    assert np.sqrt(deviations**2 @ weights / weights.sum()) == pytest.approx(DOUBT_ERROR * 1e4, rel=0.05)


def test_errors_that_lean_give_a_law_that_leans():
    errors = np.random.default_rng(0).exponential(10, PAST) - 10
    law = kept(errors, 1000.0).law(0, 1000.0, dispersion=0.1, relative=0.0, volatility=1.0)
    assert quantile(*law, 0.95) == pytest.approx(10 * np.log(20) - 10, rel=0.35)
    assert quantile(*law, 0.05) == pytest.approx(-10 * (1 - 0.051), rel=0.35)


def test_errors_of_a_large_load_are_scaled_to_a_small_one():
    past = kept(np.random.default_rng(1).normal(0, 100, PAST), 1000.0)
    small = quantile(*past.law(0, 250.0, dispersion=0.0, relative=0.01, volatility=1.0), 0.9)
    large = quantile(*past.law(0, 1000.0, dispersion=0.0, relative=0.01, volatility=1.0), 0.9)
    assert large / small == pytest.approx(4, rel=0.3)


def test_in_a_bad_hour_the_law_is_wider():
    past = kept(np.random.default_rng(2).normal(0, 100, PAST), 1000.0)
    calm = quantile(*past.law(0, 1000.0, 0.0, 0.01, volatility=1.0), 0.9)
    assert quantile(*past.law(0, 1000.0, 0.0, 0.01, volatility=4.0), 0.9) == pytest.approx(2 * calm, rel=0.1)


def test_every_so_manieth_interval_is_kept_and_the_oldest_is_replaced():
    past = kept(np.arange(2.0 * PAST + 2), 0.0, stride=2)
    assert past.came_[0] == 2 * PAST and past.came_[1] == 2.0


@pytest.mark.parametrize(("steps", "stride"), [(0, 1), (1, 0)])
def test_impossible_parameters_are_refused(steps, stride):
    with pytest.raises(ValueError, match="need steps, stride >= 1"):
        PastErrors(steps, stride)


def test_what_came_out_of_nothing_is_no_measure_of_what_comes_on_top_of_much():
    past = kept([4.0] * 20, 0.0)
    deviations, weights = past.law(0, 100.0, dispersion=16.0, relative=0.0, volatility=1.0)
    assert deviations @ weights / weights.sum() < 100
