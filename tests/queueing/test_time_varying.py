import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing import waiting
from autoscaler.queueing.staffing import servers_for_wait
from autoscaler.queueing.time_varying import (
    EmpiricalService,
    ExponentialService,
    LognormalService,
    halfin_whitt_beta,
    halfin_whitt_delay,
    modified_offered_load,
    square_root_servers,
)

LAWS = [
    ExponentialService(10.0),
    LognormalService(10.0, 2.0),
    EmpiricalService(np.array([10.0])),
    EmpiricalService(np.random.default_rng(0).gamma(2.0, 5.0, 999)),
]


@pytest.mark.parametrize("service", LAWS)
def test_a_constant_rate_is_its_offered_load(service):
    load = modified_offered_load(np.full(50, 3.0), 2.0, service)
    assert load == pytest.approx(np.full(50, 3.0 * service.mean))


@pytest.mark.parametrize("service", LAWS)
def test_the_mean_within_a_time_is_the_integral_of_the_survival(service):
    x = np.linspace(0, 400, 100_001)
    within = service.mean_within(x)
    assert within[0] == 0.0
    assert within[-1] == pytest.approx(service.mean, rel=5e-3)
    assert np.all(np.diff(within, 2) <= 1e-12)  # its slope, the survival function, falls


# Eick, Massey and Whitt, Management Science 39 (1993): rate a + b sin(w t), exponential service S:
# m(t) = S (a + b (sin(w t) - w S cos(w t)) / (1 + (w S)²)), so the peak lags and is lower.
def test_a_sine_of_the_rate_gives_the_lagging_sine_of_the_load():
    step, period, service = 0.5, 600.0, 60.0
    w = 2 * math.pi / period
    t = step * np.arange(1, 4801)
    rates = 5.0 + 3.0 * np.sin(w * (t - step / 2))
    expected = service * (5 + 3 * (np.sin(w * t) - w * service * np.cos(w * t)) / (1 + (w * service) ** 2))
    load = modified_offered_load(rates, step, ExponentialService(service))
    assert load[2400:] == pytest.approx(expected[2400:], rel=2e-4)


def test_constant_service_sees_the_rate_of_the_last_service_time():
    rates = np.array([1.0, 1.0, 5.0, 5.0, 5.0, 5.0])
    load = modified_offered_load(rates, 5.0, EmpiricalService(np.array([10.0])))
    assert load == pytest.approx([10.0, 10.0, 30.0, 50.0, 50.0, 50.0])


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=60), st.floats(0.01, 100), st.sampled_from(LAWS))
def test_the_load_stays_between_the_least_and_the_greatest(rates, step, service):
    load = modified_offered_load(np.array(rates), step, service)
    slack = 1e-9 * max(rates) * service.mean + 1e-9
    assert min(rates) * service.mean - slack <= load.min()
    assert load.max() <= max(rates) * service.mean + slack


# 1 / (1 + beta Phi / phi) from a table of the normal law: Phi(1) = 0.8413, phi(1) = 0.2420, and so on.
@pytest.mark.parametrize("beta, delay", [(0.5, 0.505), (1.0, 0.223), (1.5, 0.0842), (2.0, 0.0269)])
def test_the_delay_of_halfin_and_whitt(beta, delay):
    assert halfin_whitt_delay(beta) == pytest.approx(delay, abs=0.0006)
    assert halfin_whitt_beta(halfin_whitt_delay(beta)) == pytest.approx(beta)


def test_without_spare_servers_everybody_waits():
    assert halfin_whitt_delay(0.0) == 1.0
    assert halfin_whitt_delay(-1.0) == 1.0


@given(st.floats(1.0, 1e4), st.floats(0.01, 0.5))
def test_square_root_staffing_is_within_two_servers_of_the_exact_number(load, probability):
    exact = servers_for_wait(load, 1.0, 0.0, 1 - probability)
    assert abs(int(square_root_servers(load, probability)) - exact) <= 2


def waits_through_the_day(rates, step, servers):
    """P(all busy) at the end of each step, M(t)/M/c(t) with mean service 1, by the forward equations."""
    n = np.arange(int(max(rates) * 3 + 60))
    law = np.exp(n * math.log(rates[0]) - rates[0] - np.array([math.lgamma(k + 1.0) for k in n]))
    seen, parts = [], 20
    for rate, c in zip(rates, servers, strict=True):
        leaving = np.minimum(n, c)
        for _ in range(parts * math.ceil(step)):
            flow_up, flow_down = rate * law, leaving * law
            change = -flow_up - flow_down
            change[1:] += flow_up[:-1]
            change[:-1] += flow_down[1:]
            change[-1] += flow_up[-1]
            law = law + change * step / (parts * math.ceil(step))
        seen.append(law[c:].sum())
    return np.array(seen)


def test_square_root_staffing_is_near_iterative_staffing():
    """Feldman et al. (2008): move the servers of each moment until P(W > 0) is as wanted at each."""
    step, target = 0.25, 0.1
    rates = 12.0 + 8.0 * np.sin(2 * np.pi * np.arange(96) * step / 12.0)
    load = modified_offered_load(rates, step, ExponentialService(1.0))
    servers = square_root_servers(load, target)
    warm = len(rates) // 2
    seen = waits_through_the_day(rates, step, servers)[warm:]
    assert seen.max() < 1.5 * target
    assert seen.min() > 0.5 * target
    iterated = servers.copy()
    for _ in range(6):
        delay = waits_through_the_day(rates, step, iterated)
        fewer = waits_through_the_day(rates, step, iterated - 1)
        iterated = np.where(delay > target, iterated + 1, np.where(fewer <= target, iterated - 1, iterated))
    assert np.abs(iterated - servers)[warm:].max() <= 2
    # Staffing for the rate of the moment, as if at rest, is far from it.
    at_rest = square_root_servers(rates, target)
    assert waits_through_the_day(rates, step, at_rest)[warm:].max() > 3 * target


def test_the_limit_is_approached_by_large_pools():
    servers = int(square_root_servers(1e6, 0.1))
    assert waiting.probability_of_wait(servers, 1e6, 1.0) == pytest.approx(0.1, rel=5e-3)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: modified_offered_load(np.array([-1.0]), 1.0, LAWS[0]), "arrival_rates >= 0"),
        (lambda: modified_offered_load(np.ones(3), 0.0, LAWS[0]), "step > 0"),
        (lambda: EmpiricalService(np.array([])), "at least one"),
        (lambda: halfin_whitt_beta(1.0), "probability_of_wait < 1"),
        (lambda: square_root_servers(-1.0, 0.1), "offered_load >= 0"),
    ],
)
def test_what_has_no_meaning_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
