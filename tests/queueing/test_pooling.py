import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing.pooling import merged_service, pooling


@given(st.integers(2, 12), st.floats(0.05, 500), st.floats(0.5, 30), st.floats(0.5, 0.999))
def test_merging_equal_pools_never_costs_a_server_and_never_lengthens_the_wait(k, load, t, quantile):
    result = pooling(np.full(k, load / 10), np.full(k, 10.0), t, quantile)
    assert result.saved >= 0
    assert result.hurt == ()


def test_spare_servers_of_merged_pools_grow_with_the_square_root():
    result = pooling(np.full(16, 10.0), np.full(16, 10.0), wait_seconds=0.0, wait_quantile=0.95)
    spare_alone, spare_merged = sum(result.separate) - 1600, result.merged - 1600
    assert spare_alone / spare_merged == pytest.approx(4.0, rel=0.1)


def test_short_requests_are_hurt_by_long_ones():
    """Smith and Whitt (1981): with unequal service, sharing may be worse than separate pools."""
    result = pooling(np.array([0.5, 0.1]), np.array([0.1, 2.0]), wait_seconds=0.5, wait_quantile=0.8)
    assert result.hurt == (0,)
    assert result.wait_separate[0] < result.wait_merged < result.wait_separate[1]


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0, 3)), min_size=1, max_size=6))
def test_the_merged_service_has_the_moments_of_the_mixture(pools):
    rates, means, scvs = np.array(pools).T
    mean, scv = merged_service(rates, means, scvs)
    assert rates.sum() * mean == pytest.approx(rates @ means)  # the offered load stays
    assert means.min() * (1 - 1e-9) <= mean <= means.max() * (1 + 1e-9)
    assert scv >= scvs.min() - 1e-9  # a mixture varies at least as much as its parts


def test_services_too_unlike_to_be_merged_are_refused():
    with pytest.raises(ValueError, match="service_scv <= 10"):
        pooling(np.array([100.0, 0.01]), np.array([0.1, 100.0]), 1.0, 0.9)


def test_what_has_no_meaning_is_refused():
    with pytest.raises(ValueError, match="arrival_rates > 0"):
        pooling(np.array([1.0, 0.0]), np.ones(2), 1.0, 0.9)
