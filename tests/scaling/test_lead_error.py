"""How wrong the forecast is, one lead time ahead."""

import numpy as np
import pytest

from autoscaler.scaling.lead_error import LeadError

LEAD, INTERVAL, WINDOW = 60.0, 10.0, 40.0


def learned(rates, rng=None, predict=lambda rates, k: rates[k]) -> LeadError:
    """Predict every interval's rate one lead time ahead, by `predict(rates, k)`, and see what came."""
    error = LeadError(prior_cv=0.2, memory=1e9)
    steps = int(LEAD / INTERVAL)
    for k, rate in enumerate(rates):
        now = (k + 1) * INTERVAL
        count = rng.poisson(rate * INTERVAL) if rng else round(rate * INTERVAL)
        error.came(count, INTERVAL, now, WINDOW)
        error.predict(predict(rates, min(k + steps, len(rates) - 1)), now + LEAD - INTERVAL / 2)
    return error


def spread(error: LeadError) -> float:
    ratios, weights = error.ratios(prior_time=1.0)
    logs = np.log(ratios)
    return float(np.sqrt(weights @ (logs - weights @ logs) ** 2))


def test_before_anything_came_the_prior_stands_in():
    ratios, weights = LeadError(prior_cv=0.2, memory=1e9).ratios(prior_time=100.0)
    assert weights.sum() == pytest.approx(1.0)
    assert float(np.sqrt(weights @ np.log(ratios) ** 2)) == pytest.approx(0.2, rel=0.02)


def test_a_perfect_forecast_has_no_error_left_but_poisson_noise_which_is_taken_out():
    rng = np.random.default_rng(1)
    assert spread(learned(np.full(3000, 5.0), rng)) < 0.03


def test_a_forecast_that_is_half_of_what_comes_says_two():
    error = learned(np.full(2000, 40.0), predict=lambda rates, k: 0.5 * rates[k])
    ratios, weights = error.ratios(prior_time=1.0)
    assert float(ratios @ weights) == pytest.approx(2.0, rel=0.05)


def test_quiet_nights_do_not_make_the_days_look_wild():
    """Nights come out at a tenth or ten times of what was predicted, days exactly; nights are 1 % of load."""
    rng = np.random.default_rng(2)
    day, night = np.full(500, 50.0), np.full(500, 0.5)
    came = np.concatenate([part for _ in range(4) for part in (day, night * rng.choice([0.2, 2.0], 500))])
    said = np.concatenate([part for _ in range(4) for part in (day, night)])
    assert spread(learned(came, predict=lambda rates, k: said[k])) < 0.12


def test_what_is_pending_is_forgotten_when_measurements_are_lost():
    error = LeadError(prior_cv=0.2, memory=1e9)
    error.predict(5.0, at=60.0)
    error.lost()
    for k in range(20):
        error.came(1000, INTERVAL, (k + 1) * INTERVAL, WINDOW)
    ratios, weights = error.ratios(prior_time=1.0)
    assert float(np.log(ratios) @ weights) == pytest.approx(0.0, abs=1e-9)
