import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.queueing import ggc, waiting
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.bulk import (
    batch_capacity,
    batches_at_once,
    fewest_batch_limit,
)
from autoscaler.queueing.bulk_delay import batches_delayed
from load.bench.queue_simulation import simulate_batches

LINE = BatchLine(alpha=1.0, beta=0.1)


def simulate(servers, share_of_capacity, batch_max, service_scv, delay=0.0, requests=60_000):
    rng = np.random.default_rng([servers, batch_max, round(100 * share_of_capacity)])
    rate = share_of_capacity * batch_capacity(servers, LINE, batch_max)
    noise = iter(rng.gamma(1 / service_scv, service_scv, requests) if service_scv else np.ones(requests))
    arrivals = np.cumsum(rng.exponential(1 / rate, requests))
    waits, batches, busy = simulate_batches(
        servers, arrivals, lambda n: (1.0 + 0.1 * n) * next(noise), batch_max, delay
    )
    return rate, waits, batches.mean(), busy / arrivals[-1] / servers


# Pollaczek and Khinchin, and M/D/1 beside it: batches of one.
@pytest.mark.parametrize("utilization", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("service_scv", [0.0, 0.5, 1.0])
def test_batches_of_one_are_a_queue_with_one_server(utilization, service_scv):
    queue = batches_at_once(1, utilization, BatchLine(0.0, 1.0), batch_max=1, service_scv=service_scv)
    assert queue.utilization == pytest.approx(utilization)
    assert queue.probability_of_wait == pytest.approx(utilization)
    assert queue.wait_mean == pytest.approx(
        utilization * (1 + service_scv) / (2 * (1 - utilization)), rel=1e-5
    )


def test_exponential_batches_of_one_on_several_servers_are_erlang_c():
    queue = batches_at_once(8, 6.0, BatchLine(0.0, 1.0), batch_max=1, service_scv=1.0)
    assert queue.probability_of_wait == pytest.approx(waiting.probability_of_wait(8, 6.0, 1.0), rel=1e-6)
    assert queue.wait_mean == pytest.approx(waiting.wait_mean(8, 6.0, 1.0), rel=1e-4)


# Medhi, Stochastic Models in Queueing Theory, M/M(1,b)/1: waiting at least one, the number in queue is
# geometric with the root r in (0, 1) of mu r^(b+1) - (lambda + mu) r + lambda = 0.
@pytest.mark.parametrize("batch_max", [2, 5])
@pytest.mark.parametrize("rate", [0.4, 1.0, 1.6])
def test_exponential_batches_of_constant_mean_have_the_geometric_queue(batch_max, rate):
    coefficients = np.zeros(batch_max + 2)
    coefficients[0], coefficients[-2], coefficients[-1] = 1.0, -(rate + 1.0), rate
    root = min(r.real for r in np.roots(coefficients) if abs(r.imag) < 1e-9 and 0 < r.real < 1 - 1e-9)
    idle = 1.0 / (1.0 + rate / (1.0 - root))  # P(idle) : P(busy, n waiting) = 1 : rate r^n
    queue_mean = idle * rate * root / (1.0 - root) ** 2
    queue = batches_at_once(1, rate, BatchLine(1.0, 0.0), batch_max, service_scv=1.0)
    assert queue.probability_of_wait == pytest.approx(1.0 - idle, rel=1e-3)
    assert queue.wait_mean == pytest.approx(queue_mean / rate, rel=1e-3)


@pytest.mark.parametrize("batch_max, load", [(4, 0.5), (16, 0.3), (16, 0.8)])
@pytest.mark.parametrize("service_scv", [0.0, 0.5])
def test_one_server_is_as_simulated(batch_max, load, service_scv):
    rate, waits, batch_mean, utilization = simulate(1, load, batch_max, service_scv)
    queue = batches_at_once(1, rate, LINE, batch_max, service_scv)
    assert queue.wait_mean == pytest.approx(waits.mean(), rel=0.1)
    assert queue.batch_mean == pytest.approx(batch_mean, rel=0.02)
    assert queue.utilization == pytest.approx(utilization, rel=0.02)
    assert queue.probability_of_wait == pytest.approx(np.mean(waits > 1e-9), abs=0.01)
    for t in np.quantile(waits, [0.5, 0.9, 0.99]):
        assert queue.wait_tail(t) == pytest.approx(np.mean(waits > t), rel=0.2, abs=0.01)


@pytest.mark.parametrize(
    "servers, batch_max, load", [(2, 4, 0.5), (2, 16, 0.8), (4, 4, 0.8), (4, 16, 0.5), (16, 4, 0.5)]
)
@pytest.mark.parametrize("service_scv", [0.1, 1.0])
def test_several_servers_are_nearly_as_simulated(servers, batch_max, load, service_scv):
    rate, waits, batch_mean, utilization = simulate(servers, load, batch_max, service_scv)
    queue = batches_at_once(servers, rate, LINE, batch_max, service_scv)
    assert queue.wait_mean == pytest.approx(waits.mean(), rel=0.3)
    assert queue.batch_mean == pytest.approx(batch_mean, rel=0.05)
    assert queue.utilization == pytest.approx(utilization, rel=0.03)


@pytest.mark.parametrize("servers, batch_max, load", [(1, 4, 0.3), (2, 4, 0.3), (2, 16, 0.3), (8, 16, 0.6)])
@pytest.mark.parametrize("delay", [1.0, 4.0])
def test_with_a_waiting_delay_it_is_nearly_as_simulated(servers, batch_max, load, delay):
    rate, waits, batch_mean, utilization = simulate(servers, load, batch_max, 0.1, delay, requests=30_000)
    queue = batches_delayed(servers, rate, LINE, batch_max, delay, service_scv=0.1)
    assert queue.wait_mean == pytest.approx(waits.mean(), rel=0.2)
    assert queue.batch_mean == pytest.approx(batch_mean, rel=0.1)
    assert queue.utilization == pytest.approx(utilization, rel=0.1)


@settings(max_examples=30)
@given(st.integers(1, 8), st.floats(0.05, 0.95), st.integers(1, 24), st.floats(0.05, 1.0))
def test_what_goes_in_is_served(servers, share, batch_max, service_scv):
    rate = share * batch_capacity(servers, LINE, batch_max)
    queue = batches_at_once(servers, rate, LINE, batch_max, service_scv)
    assert 1 - 1e-9 <= queue.batch_mean <= batch_max * (1 + 1e-9)
    assert 0 < queue.utilization <= 1 + 1e-9
    assert queue.response_mean >= queue.wait_mean + LINE.service_time(1) * (1 - 1e-9)
    # Little's law for the servers: batches a second times their mean time, that lies on the line.
    in_service = rate / queue.batch_mean * LINE.service_time(queue.batch_mean)
    assert queue.utilization * servers == pytest.approx(in_service, rel=1e-6)


@pytest.mark.parametrize("servers, service_scv", [(1, 0.0), (2, 0.2), (8, 1.0)])
def test_the_quantile_is_where_the_tail_falls_to_what_is_left(servers, service_scv):
    queue = batches_at_once(servers, servers * 1.5, LINE, 8, service_scv)
    for quantile in (0.7, 0.95, 0.999):
        wait = queue.wait_quantile(quantile)
        assert queue.wait_tail(wait) <= 1 - quantile < queue.wait_tail(wait * (1 - 1e-9))
    assert queue.wait_quantile(0.01) == 0.0


def test_the_mean_wait_is_the_integral_of_its_tail():
    queue = batches_at_once(3, 12.0, LINE, 8, service_scv=0.3)
    t = np.linspace(0.0, 40.0, 200_001)
    tail = np.array([queue.wait_tail(seconds) for seconds in t])
    assert np.trapezoid(tail, t) == pytest.approx(queue.wait_mean, rel=1e-3)


def test_a_delay_of_nothing_is_no_delay():
    at_once, delayed = batches_at_once(2, 2.0, LINE, 8), batches_delayed(2, 2.0, LINE, 8, 0.0)
    assert delayed.wait_mean == at_once.wait_mean


def test_at_capacity_the_wait_is_endless():
    queue = batches_at_once(2, batch_capacity(2, LINE, 8), LINE, 8)
    assert (queue.wait_mean, queue.utilization, queue.wait_tail(1e9)) == (math.inf, 1.0, 1.0)
    assert queue.wait_quantile(0.5) == math.inf


def test_the_fewest_batch_limit_keeps_the_objective_and_one_less_does_not():
    line = BatchLine(0.020, 0.002)
    limit = fewest_batch_limit(2, 400.0, line, 64, response_seconds=0.15, quantile=0.99)
    assert limit is not None

    def late(b):
        return batches_at_once(2, 400.0, line, b).wait_tail(0.15 - line.service_time(b))

    assert late(limit) <= 0.01 < late(limit - 1)


def test_no_batch_limit_keeps_an_impossible_objective():
    assert fewest_batch_limit(1, 10.0, BatchLine(0.1, 0.0), 64, response_seconds=0.05, quantile=0.9) is None
    assert fewest_batch_limit(1, 1e6, BatchLine(0.01, 0.01), 64, response_seconds=10.0, quantile=0.9) is None


def test_full_batches_wait_as_in_ggc_when_there_is_no_time_to_gain():
    """Without a constant part batching gains no capacity; at light load batches are single requests."""
    queue = batches_at_once(4, 1.0, BatchLine(0.0, 1.0), 8, service_scv=0.5)
    assert queue.wait_mean == pytest.approx(ggc.wait_mean(4, 1.0, 1.0, service_scv=0.5), rel=0.4)


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: batches_at_once(2, 1.0, LINE, 8, service_scv=0.04),
            "0.05 <= service_scv <= 1 for 2",
        ),
        (lambda: batches_at_once(1, 1.0, LINE, 8, service_scv=1.01), "service_scv <= 1"),
        (lambda: batches_at_once(1, 0.999 * batch_capacity(1, LINE, 8), LINE, 8), "99 % of"),
        (lambda: batches_at_once(1, 0.0, LINE, 8), "arrival_rate > 0"),
        (lambda: batches_delayed(1, 1.0, LINE, 8, -1.0), "waiting_delay >= 0"),
        (lambda: BatchLine(0.0, 0.0), "not both 0"),
        (lambda: batch_capacity(1, LINE, 0), "batch_max >= 1"),
    ],
)
def test_beyond_its_range_it_says_so(call, text):
    with pytest.raises(ValueError, match=text):
        call()
