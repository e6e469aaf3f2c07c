"""The predictive distributions: published values, limiting cases, and what holds for all of them."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forecasting import Empirical, Gamma, NegativeBinomial, TruncatedNormal

LEVELS = np.array([0.0, 1e-9, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-12])

sizes = st.one_of(st.just(0.0), st.floats(1e-12, 1e12), st.floats(0, 1e300))


@st.composite
def distributions(draw):
    a, b = draw(sizes), draw(sizes)
    kind = draw(st.sampled_from(["counts", "gamma", "normal", "empirical"]))
    if kind == "counts":
        return NegativeBinomial(a, b)
    if kind == "gamma":
        return Gamma(a, b)
    if kind == "normal":
        return TruncatedNormal(a if draw(st.booleans()) else -a, b)
    nodes = draw(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=5))
    return Empirical(np.array(nodes), np.arange(1.0, 1.0 + len(nodes)))


@given(distributions())
def test_every_answer_is_finite_and_none_is_negative(distribution):
    quantiles = distribution.quantile(LEVELS)
    draws = distribution.sample(np.random.default_rng(0), size=4)
    for values in (quantiles, draws, distribution.mean, distribution.variance):
        assert np.all(np.isfinite(values)) and np.all(np.asarray(values) >= 0)


@given(distributions(), st.lists(st.floats(0, 1e300), min_size=2, max_size=6))
def test_cdf_and_quantiles_rise_and_sf_is_the_rest(distribution, points):
    x = np.sort(np.array(points))
    below, above = distribution.cdf(x), distribution.sf(x)
    assert np.all(np.diff(below) >= 0) and np.all(np.diff(above) <= 0)
    assert np.allclose(below + above, 1, atol=1e-9)
    assert np.all(np.diff(distribution.quantile(LEVELS)) >= 0)
    assert distribution.cdf(-1.0) == 0 and distribution.sf(-1.0) == 1


@given(mean=st.floats(1e-3, 1e6), dispersion=st.floats(1, 100), p=st.floats(0.001, 0.999))
def test_a_quantile_of_counts_is_the_first_count_that_reaches_it(mean, dispersion, p):
    counts = NegativeBinomial(mean, mean * dispersion)
    k = counts.quantile(p)
    assert k == math.floor(k) and counts.cdf(k) >= p
    assert k == 0 or counts.cdf(k - 1) < p


def test_counts_agree_with_scipy():
    mean, variance = 10.0, 25.0
    reference = stats.nbinom(mean**2 / (variance - mean), mean / variance)
    ours, k = NegativeBinomial(mean, variance), np.arange(60.0)
    assert ours.cdf(k) == pytest.approx(reference.cdf(k), rel=1e-12)
    assert ours.sf(200.0) == pytest.approx(reference.sf(200), rel=1e-9)  # 5e-37: not 1 - cdf
    assert ours.quantile(0.99) == reference.ppf(0.99)


def test_counts_with_no_more_variance_than_poisson_are_poisson():
    # Abramowitz and Stegun, table 26.7: P(X <= 5) = 0.61596 for a mean of 5.
    assert NegativeBinomial(5.0, variance=3.0).cdf(5.0) == pytest.approx(0.61596, abs=5e-6)
    assert NegativeBinomial(5.0, variance=3.0).variance == 5.0


def test_the_intensity_behind_counts_leaves_counting_noise_out():
    assert NegativeBinomial(10.0, variance=25.0).intensity() == Gamma(10.0, variance=15.0)
    assert NegativeBinomial(10.0, variance=10.0).intensity() == Gamma(10.0, variance=0.0)


def test_a_gamma_of_scv_one_is_exponential():
    exponential = Gamma(mean=2.0, variance=4.0)
    assert exponential.sf(6.0) == pytest.approx(math.exp(-3), rel=1e-12)
    assert exponential.quantile(0.5) == pytest.approx(2 * math.log(2), rel=1e-12)
    assert exponential.scaled(3.0) == Gamma(mean=6.0, variance=36.0)


@pytest.mark.parametrize("alpha", [-8.0, 0.0, 2.0, 29.0, 31.0, 300.0])
def test_a_truncated_normal_agrees_with_scipy_also_far_out(alpha):
    ours, reference = (
        TruncatedNormal(-2 * alpha, 2.0),
        stats.truncnorm(alpha, np.inf, loc=-2 * alpha, scale=2),
    )
    assert ours.mean == pytest.approx(reference.mean(), rel=1e-6)
    assert ours.quantile(0.9) == pytest.approx(reference.ppf(0.9), rel=1e-6)
    assert ours.sf(ours.quantile(0.9)) == pytest.approx(0.1, rel=1e-6)
    assert ours.variance == pytest.approx(ours.sample(np.random.default_rng(1), 20_000).var(), rel=0.05)


def test_half_a_normal_has_the_known_mean_and_variance():
    half = TruncatedNormal(location=0.0, scale=1.0)
    assert half.mean == pytest.approx(math.sqrt(2 / math.pi))
    assert half.variance == pytest.approx(1 - 2 / math.pi)


def test_empirical_quantiles_are_nodes_and_negative_nodes_count_as_zero():
    seen = Empirical(np.array([4.0, -3.0, 1.0]), np.array([1.0, 1.0, 2.0]))
    assert seen.mean == 1.5 and seen.variance == pytest.approx(0.25 * 2.25 + 0.5 * 0.25 + 0.25 * 6.25)
    assert seen.quantile(np.array([0.25, 0.26, 0.75, 0.76])).tolist() == [0.0, 1.0, 1.0, 4.0]
    assert (seen.cdf(1.0), seen.sf(1.0)) == (0.75, 0.25)


@pytest.mark.parametrize(
    "distribution",
    [
        NegativeBinomial(7.0, 30.0),
        Gamma(3.0, 2.0),
        TruncatedNormal(1.0, 2.0),
        Empirical(np.arange(5.0), np.ones(5)),
    ],
)
def test_samples_have_the_moments_and_pickles_are_equal(distribution):
    draws = distribution.sample(np.random.default_rng(2), size=40_000)
    assert draws.mean() == pytest.approx(distribution.mean, rel=0.02)
    assert draws.var() == pytest.approx(distribution.variance, rel=0.05)
    copy = pickle.loads(pickle.dumps(distribution))
    assert copy.quantile(LEVELS).tolist() == distribution.quantile(LEVELS).tolist()


def test_numbers_are_answered_with_numbers_and_arrays_with_arrays():
    counts = NegativeBinomial(3.0, 5.0)
    assert isinstance(counts.quantile(0.5), float) and isinstance(counts.cdf(2.0), float)
    assert counts.sf(np.arange(3.0)).shape == (3,)


@pytest.mark.parametrize("p", [-0.1, 1.0, math.nan])
def test_quantiles_exist_below_one_only(p):
    with pytest.raises(ValueError, match="0 <= p < 1"):
        Gamma(1.0, 1.0).quantile(p)


@pytest.mark.parametrize(
    "make",
    [
        lambda: NegativeBinomial(-1.0, 1.0),
        lambda: Gamma(1.0, math.inf),
        lambda: TruncatedNormal(math.nan, 1.0),
        lambda: TruncatedNormal(1.0, -1.0),
        lambda: Empirical(np.array([]), np.array([])),
        lambda: Empirical(np.array([1.0]), np.array([0.0])),
        lambda: Empirical(np.array([math.inf]), np.array([1.0])),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(ValueError, match="need"):
        make()
