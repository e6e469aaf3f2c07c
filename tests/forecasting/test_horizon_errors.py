"""Errors by horizon: what they recover, and what must not upset them."""

import numpy as np
import pytest

from forecasting.horizon_errors import STEPS, HorizonErrors


def learn(counts, points):
    """Each interval expect `points[t]` for all steps; the count of the next interval is `counts[t]`."""
    errors = HorizonErrors()
    for count, point in zip(counts, points, strict=True):
        errors.expect(np.full(len(STEPS), point))
        errors.score(count)
    return errors


def a_day_of_loads(n=4000):
    return 500 + 490 * np.sin(np.arange(n) / 288 * 2 * np.pi)


def test_nothing_measured_means_poisson_and_the_prior_error():
    dispersion, relative = HorizonErrors().coefficients()
    assert dispersion.tolist() == [1.0] * len(STEPS)
    assert relative == pytest.approx([0.3**2] * len(STEPS))


def test_right_points_with_poisson_counts_leave_poisson_noise():
    loads = a_day_of_loads()
    counts = np.random.default_rng(0).poisson(loads)
    variances = learn(counts, loads).variances(np.array([10.0, 500.0, 1000.0]), np.array([1, 1, 1]))
    assert variances == pytest.approx([10, 500, 1000], rel=0.25)


def test_dispersion_and_relative_error_are_told_apart_by_the_load():
    rng, loads = np.random.default_rng(1), a_day_of_loads()
    rates = loads * (1 + 0.1 * rng.standard_normal(len(loads)))
    counts = rates + np.sqrt(4 * loads) * rng.standard_normal(len(loads))
    dispersion, relative = learn(np.maximum(counts, 0), loads).coefficients()
    assert np.sqrt(relative[0]) == pytest.approx(0.1, rel=0.15)
    assert dispersion[0] == pytest.approx(4, rel=0.6)


def test_relative_errors_of_quiet_nights_do_not_widen_the_day():
    loads = np.tile([1000.0] * 12 + [0.5] * 12, 100)
    night = loads < 1
    counts = np.random.default_rng(2).poisson(loads).astype(float)
    counts[night] += 5  # ten times what was expected, each night
    by_day = learn(counts, loads).variances(np.array([1000.0]), np.array([1]))[0]
    assert by_day < 2 * 1000


def test_one_spike_counts_for_four_standard_deviations():
    loads = np.full(500, 100.0)
    counts = np.random.default_rng(3).poisson(loads).astype(float)
    calm = learn(counts, loads).variances(np.array([100.0]), np.array([1]))[0]
    counts[250] = 1e6
    upset = learn(counts, loads).variances(np.array([100.0]), np.array([1]))[0]
    assert upset < 1.1 * calm


def test_each_step_is_compared_with_what_was_said_so_long_ago():
    errors = HorizonErrors()
    for t in range(200):  # says t + 1000 for every step: right one step ahead, and off by h - 1 at h
        errors.expect(np.full(len(STEPS), 1000.0 + t + 1))
        errors.score(1000.0 + t + 1)
    squares = errors.sums_[4] / errors.sums_[0]
    assert squares[:7] == pytest.approx([(h - 1) ** 2 for h in STEPS[:7]])


def test_a_step_without_errors_leans_on_the_one_before():
    errors = HorizonErrors()
    errors.expect(np.full(len(STEPS), 100.0))
    errors.score(100.0)
    _, relative = errors.coefficients()
    assert relative[0] < 0.3**2 and relative[-1] == relative[0]


def test_memory_is_at_least_one_interval():
    with pytest.raises(ValueError, match="memory"):
        HorizonErrors(memory=0)
