import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing import ggc, waiting
from autoscaler.queueing.staffing import servers_for_wait
from load.bench.queue_simulation import gamma_law, lognormal_law, simulate_waits

loads = st.tuples(st.integers(1, 500), st.floats(0.05, 0.99))
scvs = st.floats(0, 10)


@given(loads, st.floats(0, 20), st.floats(0, 0.999))
def test_with_poisson_arrivals_and_exponential_service_it_is_exact(load, t, quantile):
    servers, utilization = load
    here = servers, servers * utilization, 1.0
    assert ggc.probability_of_wait(*here) == pytest.approx(waiting.probability_of_wait(*here))
    assert ggc.wait_mean(*here) == pytest.approx(waiting.wait_mean(*here))
    assert ggc.wait_tail(*here, t) == pytest.approx(waiting.wait_tail(*here, t))
    assert ggc.wait_quantile(*here, quantile) == pytest.approx(waiting.wait_quantile(*here, quantile))


# Pollaczek and Khinchin: E[W] = rho (1 + cs2) / (2 (1 - rho)), mean service 1; M/D/1 with cs2 = 0.
@given(st.floats(0.05, 0.99), scvs)
def test_the_mean_wait_of_one_server_with_poisson_arrivals_is_exact(utilization, service_scv):
    expected = utilization * (1 + service_scv) / (2 * (1 - utilization))
    assert ggc.wait_mean(1, utilization, 1.0, service_scv=service_scv) == pytest.approx(expected)


def tail_of_constant_service(utilization, t):
    """M/D/1, exactly: Erlang (1909), in a sum of terms that alternate; P(W <= t) with service 1."""
    terms = [
        (utilization * (k - t)) ** k / math.factorial(k) * math.exp(-utilization * (k - t))
        for k in range(math.floor(t) + 1)
    ]
    return 1 - (1 - utilization) * math.fsum(terms)


@pytest.mark.parametrize("utilization", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 3.0, 6.0])
def test_the_tail_of_constant_service_is_near_the_exact_one(utilization, t):
    assert ggc.wait_tail(1, utilization, 1.0, t, service_scv=0.0) == pytest.approx(
        tail_of_constant_service(utilization, t), abs=0.06
    )


@given(loads, scvs, scvs, st.floats(0, 20))
def test_another_server_never_lengthens_the_wait(load, ca2, cs2, t):
    servers, utilization = load
    here, further = (
        ggc.wait_tail(c, servers * utilization, 1.0, t, arrival_scv=ca2, service_scv=cs2)
        for c in (servers, servers + 1)
    )
    assert 0 <= further <= here <= 1


@given(loads, scvs, st.floats(0, 5), scvs, st.floats(0, 5))
def test_more_variability_never_shortens_the_mean_wait(load, ca2, more_arrival, cs2, more_service):
    servers, utilization = load

    def mean(arrival_scv, service_scv):
        return ggc.wait_mean(
            servers, servers * utilization, 1.0, arrival_scv=arrival_scv, service_scv=service_scv
        )

    assert mean(min(ca2 + more_arrival, 10), cs2) >= mean(ca2, cs2) * (1 - 1e-9)
    if ca2 <= 1:  # longer services even out bursts, so the chance of a wait may fall with their SCV
        assert mean(ca2, min(cs2 + more_service, 10)) >= mean(ca2, cs2) * (1 - 1e-9)


@given(loads, scvs, scvs, st.floats(0.0, 0.9999))
def test_the_quantile_is_where_the_tail_falls_to_what_is_left(load, ca2, cs2, quantile):
    servers, utilization = load
    arguments = {"arrival_scv": ca2, "service_scv": cs2}
    wait = ggc.wait_quantile(servers, servers * utilization, 1.0, quantile, **arguments)
    tail = ggc.wait_tail(servers, servers * utilization, 1.0, wait, **arguments)
    if wait > 1e-6:
        assert tail == pytest.approx(1 - quantile, rel=1e-6)


# The corners of the stated range, inside and at the edges, by simulation. Factors are those that
# docs/queueing.md states for nine of ten cases, and the simulation's own error.
CORNERS = [
    # servers, utilization, arrival_scv, service_scv, factor of the mean, factor of the 99 % wait
    (1, 0.8, 0.02, 1.0, 1.2, 1.2),
    (1, 0.8, 10.0, 0.02, 1.15, 1.15),
    (4, 0.8, 1.0, 0.0, 1.15, 1.2),
    (4, 0.8, 0.0, 1.0, 1.3, 1.3),
    (4, 0.7, 4.0, 0.25, 1.15, 1.2),
    (10, 0.8, 4.0, 1.0, 1.15, 1.2),
    (10, 0.85, 0.25, 4.0, 1.25, 1.25),
    (30, 0.85, 4.0, 4.0, 1.5, 1.4),
    (30, 0.85, 1.0, 0.25, 1.2, 1.2),
]


@pytest.mark.parametrize("servers, utilization, ca2, cs2, mean_factor, quantile_factor", CORNERS)
def test_the_wait_agrees_with_simulation(servers, utilization, ca2, cs2, mean_factor, quantile_factor):
    rate, memory = servers * utilization, (ca2 + cs2 + 0.5) / (1 - utilization) ** 2
    waits = simulate_waits(
        servers,
        gamma_law(1 / rate, ca2),
        gamma_law(1.0, cs2),
        customers=1500 + int(5 * memory),
        warm_up=int(4 * memory + 20 * servers),
        copies=500,
        rng=np.random.default_rng(7),
    )
    arguments = {"arrival_scv": ca2, "service_scv": cs2}
    mean = ggc.wait_mean(servers, rate, 1.0, **arguments)
    assert mean / mean_factor <= waits.mean() <= mean * mean_factor
    quantile = ggc.wait_quantile(servers, rate, 1.0, 0.99, **arguments)
    assert quantile / quantile_factor <= np.quantile(waits, 0.99) <= quantile * quantile_factor


def test_a_pool_sized_for_an_objective_keeps_it_in_simulation():
    servers = servers_for_wait(20.0, 1.0, 0.5, 0.95, arrival_scv=4.0, service_scv=0.5)
    waits = simulate_waits(
        servers,
        gamma_law(1 / 20.0, 4.0),
        lognormal_law(1.0, 0.5),
        customers=4000,
        warm_up=1000,
        copies=300,
        rng=np.random.default_rng(8),
    )
    assert 0.02 < np.mean(waits > 0.5) < 0.065


def test_outside_the_stable_region_the_wait_is_certain_and_endless():
    arguments = {"arrival_scv": 2.0, "service_scv": 0.5}
    assert ggc.probability_of_wait(2, 2.0, 1.0, **arguments) == 1.0
    assert ggc.wait_tail(2, 5.0, 1.0, 1e9, **arguments) == 1.0
    assert ggc.wait_mean(2, 2.0, 1.0, **arguments) == math.inf
    assert ggc.wait_quantile(2, 2.0, 1.0, 0.5, **arguments) == math.inf


def test_clockwork_below_capacity_never_waits():
    assert ggc.wait_tail(3, 2.9, 1.0, 0.001, arrival_scv=0.0, service_scv=0.0) == 0.0
    assert ggc.wait_mean(3, 2.9, 1.0, arrival_scv=0.0, service_scv=0.0) < 1e-100


@pytest.mark.parametrize("name", ["arrival_scv", "service_scv"])
@pytest.mark.parametrize("scv", [-0.01, 10.01, math.nan])
def test_beyond_its_range_it_says_so(name, scv):
    with pytest.raises(ValueError, match=f"0 <= {name} <= 10, got {scv}"):
        ggc.wait_mean(2, 1.0, 1.0, **{name: scv})
    assert ggc.wait_mean(2, 1.0, 1.0, **{name: 10.0}) > 0


@given(st.integers(1, 2000), st.floats(0.01, 1.1), st.floats(0, 10), st.floats(0, 10), st.floats(0, 0.9999))
def test_a_number_is_answered_as_an_array_of_it(servers, utilization, ca2, cs2, quantile):
    scvs = {"arrival_scv": ca2, "service_scv": cs2}
    for wait, last in (
        (ggc.probability_of_wait, ()),
        (ggc.wait_mean, ()),
        (ggc.wait_tail, (0.1,)),
        (ggc.wait_quantile, (quantile,)),
    ):
        alone = wait(servers, servers * utilization, 1.0, *last, **scvs)
        (among,) = wait(np.array([servers]), servers * utilization, 1.0, *last, **scvs)
        assert isinstance(alone, float)
        assert alone == pytest.approx(among, rel=1e-10, abs=1e-13)
