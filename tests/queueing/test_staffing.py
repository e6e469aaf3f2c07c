import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing import ggc, waiting
from autoscaler.queueing.search import fewest
from autoscaler.queueing.staffing import (
    servers_for_mean_wait,
    servers_for_wait,
    servers_for_wait_each,
    servers_for_wait_mixture,
)
from autoscaler.queueing.utilization_band import band_servers, servers_for_utilization

loads = st.floats(0.01, 1e6)
quantiles = st.floats(0.1, 0.9999)
waits = st.floats(0, 100)
scvs = st.floats(0.02, 10)


@given(loads, waits, quantiles, scvs, scvs)
def test_the_fewest_servers_keep_the_objective_and_one_fewer_does_not(load, t, quantile, ca2, cs2):
    c = servers_for_wait(load / 10, 10.0, t, quantile, arrival_scv=ca2, service_scv=cs2)
    kept, broken = (
        ggc.wait_tail(servers, load / 10, 10.0, t, arrival_scv=ca2, service_scv=cs2) for servers in (c, c - 1)
    )
    assert kept <= 1 - quantile < broken


@given(loads, st.floats(0.001, 1000), scvs)
def test_the_fewest_servers_keep_a_mean_wait(load, wait_mean, scv):
    c = servers_for_mean_wait(load / 10, 10.0, wait_mean, service_scv=scv)
    assert ggc.wait_mean(c, load / 10, 10.0, service_scv=scv) <= wait_mean
    assert ggc.wait_mean(c - 1, load / 10, 10.0, service_scv=scv) > wait_mean


@given(st.lists(loads, min_size=1, max_size=20), waits, quantiles)
def test_many_pools_at_once_are_sized_as_one_by_one(offered_loads, t, quantile):
    rates = np.array(offered_loads) / 10
    together = servers_for_wait_each(rates, 10.0, t, quantile)
    assert together.tolist() == [servers_for_wait(rate, 10.0, t, quantile) for rate in rates]


@given(loads, waits, quantiles)
def test_a_mixture_of_one_rate_is_that_rate(load, t, quantile):
    one = np.array([load / 10])
    assert servers_for_wait_mixture(one, np.ones(1), 10.0, t, quantile) == servers_for_wait(
        load / 10, 10.0, t, quantile
    )


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0.01, 1)), min_size=1, max_size=25), waits, quantiles)
def test_the_fewest_servers_for_a_mixture_keep_the_objective_on_average(nodes, t, quantile):
    rates, weights = np.array(nodes).T
    weights /= weights.sum()
    c = servers_for_wait_mixture(rates, weights, 10.0, t, quantile)

    def late(servers):
        return weights @ np.where(rates > 0, waiting.wait_tail(servers, rates, 10.0, t), 0.0)

    assert late(c) <= (1 - quantile) * (1 + 1e-9)
    assert c == 0 or late(c - 1) > (1 - quantile) * (1 - 1e-9)


def test_what_might_overload_the_servers_is_a_certain_wait():
    rates, weights = np.array([1.0, 10.0]), np.array([0.98, 0.02])
    assert servers_for_wait_mixture(rates, weights, 10.0, 5.0, 0.99) > 100
    assert servers_for_wait_mixture(rates, weights, 10.0, 5.0, 0.97) < 20


def test_without_arrivals_no_server_is_needed():
    assert servers_for_wait(0.0, 10.0, 1.0, 0.99) == 0
    assert servers_for_mean_wait(0.0, 10.0, 1.0) == 0
    assert servers_for_wait_mixture(np.zeros(3), np.full(3, 1 / 3), 10.0, 1.0, 0.99) == 0
    assert servers_for_utilization(0.0, 0.75) == 0


@pytest.mark.parametrize("load", [1.0, 10.0, 1e3, 1e6])
def test_the_search_asks_few_times(load):
    asked = []

    tail = ggc.WaitTail.of(load, 1.0, 1.0, 1.0)

    def excess(c):
        asked.append(c)
        here, fewer = tail.log_and_with_one_fewer(c, 0.1)
        return here - math.log(0.01), fewer - math.log(0.01)

    far_off = load * 3 + 1
    fewest(excess, math.floor(load), far_off)
    assert len(asked) <= 8 + 2 * math.log2(load + 1)


def test_the_band_of_the_design():
    assert band_servers(10.0, 0.60, 0.75) == (14, 16)


def test_a_band_without_a_whole_number_is_told_by_more_least_than_most():
    least, most = band_servers(1.0, 0.60, 0.75)
    assert (least, most) == (2, 1)


@given(st.integers(1, 10**6), st.floats(0.05, 1.0))
def test_rounding_never_costs_a_server(servers, utilization):
    assert servers_for_utilization(servers * utilization, utilization) == servers


@given(loads, st.floats(0.05, 0.99))
def test_the_utilization_ceiling_holds(load, ceiling):
    c = servers_for_utilization(load, ceiling)
    assert load / c <= ceiling * (1 + 1e-8)
    assert c == 1 or load / (c - 1) > ceiling * (1 - 1e-8)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: servers_for_wait(1.0, 10.0, 5.0, 1.0), "0 < wait_quantile < 1"),
        (lambda: servers_for_wait(1.0, 10.0, -5.0, 0.9), "wait_seconds >= 0"),
        (lambda: servers_for_wait(-1.0, 10.0, 5.0, 0.9), "arrival_rate >= 0"),
        (lambda: servers_for_wait(math.inf, 10.0, 5.0, 0.9), "finite arrival_rate"),
        (lambda: servers_for_wait(math.nan, 10.0, 5.0, 0.9), "finite arrival_rate"),
        (lambda: servers_for_mean_wait(1.0, 10.0, 0.0), "wait_mean > 0"),
        (lambda: servers_for_utilization(1.0, 1.5), "utilization_high <= 1"),
        (lambda: band_servers(1.0, 0.8, 0.6), "utilization_low < utilization_high"),
        (lambda: servers_for_wait_mixture(np.ones(2), np.ones(2), 1.0, 1.0, 0.9), "sum 1"),
        (lambda: servers_for_wait_mixture(np.ones(2), np.ones(1), 1.0, 1.0, 0.9), "as many weights"),
    ],
)
def test_what_has_no_meaning_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
