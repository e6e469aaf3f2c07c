"""Scores, by hand and by their limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forecasting.scores import coverage, crps, mae, mase, pinball

NAN = math.nan


def test_absolute_errors_are_averaged_over_what_is_known():
    assert mae(np.array([1.0, NAN, 5.0]), np.array([2.0, 9.0, 2.0])) == 2.0


def test_too_little_capacity_costs_nine_times_too_much_at_the_90_percent_quantile():
    short, spare = np.array([10.0]), np.array([0.0])
    assert pinball(short, np.array([0.0]), 0.9) == pytest.approx(9.0)
    assert pinball(spare, np.array([10.0]), 0.9) == pytest.approx(1.0)


@given(st.floats(0.05, 0.95))
def test_pinball_loss_is_least_at_the_quantile(p):
    counts = np.arange(101.0)
    losses = [pinball(counts, np.full(101, q), p) for q in counts]
    assert counts[int(np.argmin(losses))] == pytest.approx(100 * p, abs=1)


def test_crps_of_one_sample_is_the_absolute_error():
    assert crps(np.array([3.0, 8.0]), np.array([[5.0], [4.0]])) == 3.0


def test_crps_of_two_samples_by_hand():
    # E|X - y| = (1 + 3) / 2, E|X - X'| = 4 / 2 of samples 2 and 6 at y = 3.
    assert crps(np.array([3.0]), np.array([[6.0, 2.0]])) == pytest.approx(2 - 1)


def test_crps_of_a_normal_agrees_with_its_closed_form():
    # Gneiting and Raftery (2007), eq. 21: z (2Φ(z) - 1) + 2φ(z) - 1/√π.
    z, levels = 0.7, (np.arange(2000) + 0.5) / 2000
    closed = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / math.sqrt(math.pi)
    assert crps(np.array([z]), stats.norm.ppf(levels)[None, :]) == pytest.approx(closed, rel=1e-3)


def test_coverage_counts_the_ends_in_and_the_missing_out():
    actual, low, high = np.array([1.0, 2.0, 4.0, NAN]), np.full(4, 1.0), np.full(4, 2.0)
    assert coverage(actual, low, high) == pytest.approx(2 / 3)


def test_mase_of_the_seasonal_naive_forecast_is_one_where_errors_are_alike():
    history = np.array([0.0, 10.0, 2.0, 12.0])  # differs by 2 from the season before
    assert mase(np.array([4.0, 14.0]), history[2:], history, season_length=2) == 1.0
    assert mase(np.array([4.0]), np.array([4.0]), history) == 0.0


def test_a_history_that_repeats_itself_has_no_scale():
    assert math.isnan(mase(np.array([1.0]), np.array([2.0]), np.ones(9)))


def test_of_nothing_known_there_is_no_score():
    nothing = np.array([NAN])
    assert math.isnan(mae(nothing, nothing)) and math.isnan(coverage(nothing, nothing, nothing))


@pytest.mark.parametrize(
    "score",
    [
        lambda: mae(np.ones(2), np.ones(3)),
        lambda: pinball(np.ones(2), np.ones(2), 1.0),
        lambda: crps(np.ones(2), np.ones((3, 4))),
        lambda: coverage(np.ones(2), np.ones(2), np.ones(3)),
        lambda: mase(np.ones(2), np.ones(2), np.ones(9), season_length=0),
    ],
)
def test_what_cannot_be_scored_is_refused(score):
    with pytest.raises(ValueError, match="need"):
        score()
