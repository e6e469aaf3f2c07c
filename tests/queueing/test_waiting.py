import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing.waiting import probability_of_wait, wait_mean, wait_quantile, wait_tail

loads = st.tuples(st.integers(1, 2000), st.floats(0.01, 0.999))


@pytest.mark.parametrize("utilization", [0.1, 0.5, 0.95])
def test_one_server_waits_as_in_every_textbook(utilization):
    """M/M/1: P(W > t) = rho exp(-(mu - lambda) t), E[W] = rho / (mu - lambda)."""
    assert probability_of_wait(1, utilization, 1.0) == pytest.approx(utilization)
    assert wait_mean(1, utilization, 1.0) == pytest.approx(utilization / (1 - utilization))
    expected = utilization * math.exp(-2 * (1 - utilization))
    assert wait_tail(1, utilization, 1.0, 2.0) == pytest.approx(expected)


def test_a_pool_far_above_its_load_never_waits():
    assert wait_mean(1000, 1.0, 10.0) == 0.0
    assert wait_quantile(1000, 1.0, 10.0, 0.99) == 0.0


# Halfin and Whitt (1981): c = a + beta sqrt(a), a to infinity; P(W > 0) = 1 / (1 + beta Phi / phi).
@pytest.mark.parametrize("beta, expected", [(0.5, 0.5046), (1.0, 0.2234), (2.0, 0.02688)])
def test_large_pools_reach_the_limit_of_halfin_and_whitt(beta, expected):
    servers = 1_000_000
    load = servers - beta * math.sqrt(servers)
    assert probability_of_wait(servers, load, 1.0) == pytest.approx(expected, rel=3e-3)


@given(loads, st.floats(0.001, 1000), st.floats(0.0, 0.9999))
def test_the_quantile_is_where_the_tail_falls_to_what_is_left(load, service_time_mean, quantile):
    servers, utilization = load
    rate = servers * utilization / service_time_mean
    wait = wait_quantile(servers, rate, service_time_mean, quantile)
    tail = wait_tail(servers, rate, service_time_mean, wait)
    assert tail == pytest.approx(1 - quantile) if wait > 0 else tail <= (1 - quantile) * (1 + 1e-12)


@given(loads, st.floats(0.001, 1000))
def test_the_mean_is_the_integral_of_the_tail(load, service_time_mean):
    servers, utilization = load
    rate = servers * utilization / service_time_mean
    scale = service_time_mean / (servers * (1 - utilization))
    t = np.linspace(0, 40 * scale, 20_001)
    integral = np.trapezoid(wait_tail(servers, rate, service_time_mean, t), t)
    assert wait_mean(servers, rate, service_time_mean) == pytest.approx(integral, rel=1e-5)


@given(loads, st.floats(0.01, 100))
def test_waits_scale_with_the_unit_of_time(load, unit):
    servers, utilization = load
    wait = wait_mean(servers, servers * utilization / unit, unit)
    assert wait == pytest.approx(unit * wait_mean(servers, servers * utilization, 1.0), rel=1e-6)


@given(loads, st.floats(0, 10))
def test_another_server_never_lengthens_the_wait(load, t):
    servers, utilization = load
    here, further = (wait_tail(c, servers * utilization, 1.0, t) for c in (servers, servers + 1))
    assert further <= here


@pytest.mark.parametrize("rate", [2.0, 5.0])
def test_outside_the_stable_region_the_wait_is_certain_and_endless(rate):
    assert probability_of_wait(2, rate, 1.0) == 1.0
    assert wait_tail(2, rate, 1.0, 1e9) == 1.0
    assert wait_mean(2, rate, 1.0) == math.inf
    assert wait_quantile(2, rate, 1.0, 0.0) == math.inf


@pytest.mark.parametrize(
    "arguments, name",
    [((1, -1.0, 1.0), "arrival_rate"), ((1, 1.0, 0.0), "service_time_mean"), ((-1, 1.0, 1.0), "servers")],
)
def test_what_has_no_meaning_is_refused(arguments, name):
    with pytest.raises(ValueError, match=name):
        wait_mean(*arguments)
    with pytest.raises(ValueError, match="quantile"):
        wait_quantile(2, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="wait_seconds"):
        wait_tail(2, 1.0, 1.0, -1.0)
