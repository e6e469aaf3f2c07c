"""How wrong the forecast is, one lead time ahead."""

import numpy as np
import pytest

from autoscaler.scaling.lead_error import LeadError

LEAD, INTERVAL, WINDOW = 60.0, 10.0, 40.0
SURE = 1e-9
"""Prior time that lets what was seen speak alone [s]."""


def learned(rates, rng=None, predict=lambda rates, k: rates[k], dispersion=1.0) -> LeadError:
    """Predict every interval's rate one lead time ahead, by `predict(rates, k)`, and see what came."""
    error = LeadError(memory=1e9)
    steps = int(LEAD / INTERVAL)
    for k, rate in enumerate(rates):
        now = (k + 1) * INTERVAL
        if rng is None:
            count = round(rate * INTERVAL)
        else:
            count = rng.poisson(rate * INTERVAL / dispersion) * dispersion
        error.came(count, INTERVAL, now, WINDOW, dispersion)
        said = predict(rates, min(k + steps, len(rates) - 1))
        error.predict(said, said, said, now + LEAD - INTERVAL / 2)
    return error


def moments(error: LeadError, predicted: float, prior_time: float = SURE, spread=0.15) -> tuple[float, float]:
    """Mean of the rate, and relative standard deviation."""
    rates, weights = error.rates(predicted, spread, prior_time)
    mean = float(rates @ weights)
    return mean, float(np.sqrt(weights @ (rates - mean) ** 2)) / mean


def test_before_anything_came_the_statement_of_the_forecast_stands_in():
    rates, weights = LeadError(memory=1e9).rates(4.0, 0.2, prior_time=100.0)
    assert weights.sum() == pytest.approx(1.0)
    assert np.all(np.diff(rates) >= 0)
    mean, spread = moments(LeadError(memory=1e9), 4.0, 100.0, spread=0.2)
    assert mean == pytest.approx(4.0, rel=0.03)
    assert spread == pytest.approx(0.2 * np.sqrt(6 / 4), rel=0.15)  # Student's variance is ν / (ν - 2)


@pytest.mark.parametrize("dispersion", [1.0, 4.0])
def test_a_perfect_forecast_has_no_error_left_but_noise_of_counting_which_is_taken_out(dispersion):
    rng = np.random.default_rng(1)
    error = learned(np.full(3000, 5.0), rng, dispersion=dispersion)
    assert moments(error, 5.0)[1] < 0.25 * np.sqrt(dispersion / (5.0 * WINDOW))


def test_a_forecast_that_is_half_of_what_comes_says_two():
    error = learned(np.full(2000, 40.0), predict=lambda rates, k: 0.5 * rates[k])
    assert moments(error, 20.0)[0] == pytest.approx(40.0, rel=0.05)


def test_quiet_nights_do_not_make_the_days_look_wild():
    """Nights come out at a fifth or twice of what was predicted, days exactly; nights are 1 % of load."""
    rng = np.random.default_rng(2)
    day, night = np.full(500, 50.0), np.full(500, 0.5)
    came = np.concatenate([part for _ in range(4) for part in (day, night * rng.choice([0.2, 2.0], 500))])
    said = np.concatenate([part for _ in range(4) for part in (day, night)])
    error = learned(came, predict=lambda rates, k: said[k])
    assert moments(error, 50.0)[1] < 0.06
    assert moments(error, 0.5)[1] > 0.1  # and the nights are known to be


def test_noise_that_grows_with_the_load_is_known_at_every_load():
    """Counts of groups of 9, at 16/s: at 1/s, never seen, the relative error must be four times that."""
    rng = np.random.default_rng(3)
    rates = 16.0 + 4.0 * np.repeat(rng.standard_normal(500), 8)
    error = learned(rates, predict=lambda rates, k: 16.0)
    assert moments(error, 1.0)[1] == pytest.approx(4 * moments(error, 16.0)[1], rel=0.3)


def test_an_error_that_happened_once_in_a_hundred_is_in_the_tail():
    rates = np.full(4000, 10.0)
    rates[np.arange(0, 4000, 400)[:, None] + np.arange(4)] = 30.0
    error = learned(rates, predict=lambda rates, k: 10.0)
    law, weights = error.rates(10.0, 0.15, SURE)
    assert 0.003 < weights[law > 20.0].sum() < 0.03


def test_some_doubt_remains_however_quiet_it_was():
    """One lead time of calm says little of the next, a thousand say more."""
    calm = learned(np.full(2000, 10.0))
    few, many = (calm.rates(10.0, 0.15, prior_time)[0][-1] for prior_time in (50_000.0, 100.0))
    assert few > many > 10.0


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_what_holds_of_a_correction_one_lead_time_later_is_learned(share):
    """Now is 900/s instead of 400/s expected; what comes later keeps `share` of the difference of roots."""
    error = LeadError(memory=1e9)
    later = (20.0 + share * 10.0) ** 2
    for k in range(1, 400):
        now = k * INTERVAL
        error.came(round(later * INTERVAL), INTERVAL, now, WINDOW, 1.0)
        error.predict(400.0, 900.0, 400.0, now + LEAD - INTERVAL / 2)
    assert error.carried == pytest.approx(share, abs=0.05)


def test_what_is_pending_is_forgotten_when_measurements_are_lost():
    error = LeadError(memory=1e9)
    error.predict(5.0, 5.0, 5.0, at=60.0)
    error.lost()
    for k in range(20):
        error.came(1000, INTERVAL, (k + 1) * INTERVAL, WINDOW, 1.0)
    assert moments(error, 5.0)[0] == pytest.approx(5.0, rel=0.02)


def test_a_prediction_of_nothing_gives_rates_that_are_finite_and_not_negative():
    rates, weights = learned(np.full(100, 5.0)).rates(0.0, 0.15, 100.0)
    assert np.all(np.isfinite(rates))
    assert np.all(rates >= 0)
    assert weights.sum() == pytest.approx(1.0)
