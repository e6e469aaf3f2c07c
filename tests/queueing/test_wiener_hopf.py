import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from autoscaler.queueing.wiener_hopf import Walk


def visits_by_elimination(step, most_down, starts, numbers):
    """The same system cut off far out, and solved as any other."""
    j = np.arange(numbers)
    k = j[:, None] - j + most_down
    inside = (k >= 0) & (k < len(step))
    moves = np.where(inside, step[np.clip(k, 0, len(step) - 1)], 0.0)
    return np.linalg.solve(np.eye(numbers) - moves, np.pad(starts, (0, numbers - len(starts))))


@given(st.integers(1, 20), st.floats(0.01, 0.7), st.floats(0.0, 1.0), st.integers(1, 60))
def test_visits_are_as_eliminated(most_down, load, spread, furthest):
    """Steps of a mixture of two Poisson laws, less `most_down`; starts anywhere."""
    means = load * most_down * np.array([1.0 - spread, 1.0 + spread])
    step = stats.poisson.pmf(np.arange(200), means[:, None]).mean(axis=0)
    starts = np.random.default_rng(furthest).dirichlet(np.ones(furthest))
    walk = Walk.of(step, most_down, furthest)
    found = walk.visits(walk.entered(starts), 700)
    assert found == pytest.approx(visits_by_elimination(step, most_down, starts, 700), abs=1e-11)


def test_steps_by_one_are_the_ruin_of_a_gambler():
    """Down with 0.6, up with 0.4, from 0: 1 / 0.6 visits to 0, and 2 / 3 as many to each further number."""
    walk = Walk.of(np.array([0.6, 0.0, 0.4]), 1, 1)
    expected = (2.0 / 3.0) ** np.arange(12) / 0.6
    assert walk.visits(walk.entered(np.ones(1)), 12) == pytest.approx(expected, rel=1e-11)


def test_many_starts_are_taken_at_once():
    walk = Walk.of(np.array([0.7, 0.1, 0.2]), 1, 5)
    starts = np.eye(5)
    together = walk.visits(walk.entered(starts), 30)
    assert together[3] == pytest.approx(walk.visits(walk.entered(starts[3]), 30), abs=1e-14)
