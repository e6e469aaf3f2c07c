"""Stacked regression: recovers what made the data, keeps to its prior, never looks ahead."""

import numpy as np
import pytest

from forecasting.stacking import BLOCK_ENDS, stack

STEPS = np.array([1, 3])


def made(n, coefficients, noise=0.1, seed=0):
    """Features, offsets, and what came: one step ahead, 5 + features times coefficients."""
    rng = np.random.default_rng(seed)
    features = np.repeat(rng.normal(size=(n, 1, len(coefficients))), 2, axis=1)
    came = np.full(n, 5.0)
    came[1:] += features[:-1, 0] @ coefficients
    return features, np.full((n, 2), 5.0), came + noise * rng.normal(size=n)


def test_the_coefficients_of_the_data_are_found():
    features, offsets, came = made(2000, [0.7, -0.3])
    found, _ = stack(features, offsets, came, STEPS, np.zeros((2, 2)))
    assert found[0] == pytest.approx([0.7, -0.3], abs=0.02)
    assert found[1] == pytest.approx([0.0, 0.0], abs=0.1)


def test_with_little_data_they_stay_near_the_prior():
    features, offsets, came = made(4, [0.7, -0.3])
    found, _ = stack(features, offsets, came, STEPS, np.full((2, 2), 2.0))
    assert np.all(np.abs(found[1] - 2.0) < 1.5)
    nothing, _ = stack(features, offsets, np.full(4, np.nan), STEPS, np.full((2, 2), 2.0))
    assert np.all(nothing == 2.0)


def test_one_spike_does_not_decide():
    features, offsets, came = made(500, [0.7, -0.3])
    came[250] = 1e6
    found, _ = stack(features, offsets, came, STEPS, np.zeros((2, 2)))
    assert found[0] == pytest.approx([0.7, -0.3], abs=0.05)


def test_no_prediction_knows_what_came_after_its_block_began():
    features, offsets, came = made(800, [0.7, -0.3])
    _, before = stack(features, offsets, came, STEPS, np.zeros((2, 2)))
    end = round(BLOCK_ENDS[4] * 800)
    came[end:] = 1000.0
    _, after = stack(features, offsets, came, STEPS, np.zeros((2, 2)))
    following = round(BLOCK_ENDS[5] * 800)
    assert np.array_equal(before[:following], after[:following])
    assert not np.allclose(before[following:], after[following:])
