"""The replay against queueing theory: one FIFO queue before c slots, requests with their own times.

Each mean is over 20 pieces of one long replay; their spread gives the standard error, and theory must lie
within 4 of them. Seeds are fixed, so that these tests pass or fail alike each time.
"""

import heapq
from dataclasses import fields

import numpy as np
import pytest
from scipy.special import gammainc

from autoscaler.queueing import ggc, waiting
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from tests.replay.scripted import Orders, steady
from tests.replay.steady_state import agrees


class Exponential(Scenario):
    """The M of M/M/c."""

    def service_times(self, n_requests, rng):
        return rng.exponential(self.service_time_mean, n_requests)


def waits_of(scenario: Scenario, seed: int = 1) -> np.ndarray:
    return replay(scenario, Orders(), seed=seed).waits


def exponential(scenario: Scenario) -> Scenario:
    return Exponential(**{field.name: getattr(scenario, field.name) for field in fields(Scenario)})


@pytest.mark.parametrize("replicas, slots, rho", [(1, 1, 0.7), (8, 1, 0.75), (4, 4, 0.85)])
def test_exponential_services_wait_as_erlang_says(replicas, slots, rho):
    """M/M/c: the probability of a wait, its mean, and its tail; slots are slots, in whichever replica."""
    c, mean = replicas * slots, 2.0
    rate = rho * c / mean
    scenario = steady(
        rate, 60_000, service_time_mean=mean, replicas_initial=replicas, slots_per_replica=slots
    )
    waits = waits_of(exponential(scenario))
    assert agrees(waits > 0, waiting.probability_of_wait(c, rate, mean))
    assert agrees(waits, waiting.wait_mean(c, rate, mean))
    assert agrees(waits > 0.5, waiting.wait_tail(c, rate, mean, 0.5))


def wait_mean_of_constant_services(c: int, rate: float, time: float) -> float:
    """E[W] of M/D/c, exact. Constant services end in the order they began, so each server takes every c-th
    customer: a single server with Erlang-c times between arrivals, whose mean wait is by Spitzer's identity
    the sum over k of E[(k time - T_kc)+] / k, with T_n the time of n arrivals."""
    k = np.arange(1, 4000)
    n = k * c
    x = rate * k * time
    return float((k * time * gammainc(n, x) - n / rate * gammainc(n + 1, x)) @ (1 / k))


def test_the_exact_formula_is_that_of_pollaczek_and_khinchine_for_one_server():
    assert wait_mean_of_constant_services(1, 0.8, 1.0) == pytest.approx(0.8 / (2 * 0.2))


@pytest.mark.parametrize("c, rho", [(1, 0.8), (4, 0.8), (16, 0.9)])
def test_constant_services_wait_as_the_exact_formula_says(c, rho):
    """M/D/c."""
    rate = rho * c
    scenario = steady(
        rate, 60_000, service_time_mean=1.0, service_scv=0.0, replicas_initial=c, control_interval=60.0
    )
    assert agrees(waits_of(scenario), wait_mean_of_constant_services(c, rate, 1.0))


def test_lognormal_services_before_one_server_wait_as_pollaczek_and_khinchine_say():
    """M/G/1, SCV 4: E[W] = rate E[S²] / (2 (1 - rho))."""
    rho, scv = 0.6, 4.0
    scenario = steady(
        rho, 80_000, service_time_mean=1.0, service_scv=scv, control_interval=60.0, replicas_initial=1
    )
    waits = waits_of(scenario)
    assert agrees(waits, rho * (1 + scv) / (2 * (1 - rho)))
    assert agrees(waits > 0, rho)  # Poisson arrivals see time averages


def test_lognormal_services_before_several_servers_wait_about_as_the_sizing_believes():
    """M/G/4, SCV 4: the approximation that sizes fleets; within 15 % of it, beside the standard error."""
    c, rate, scv = 4, 2.6, 4.0
    scenario = steady(
        rate, 90_000, service_time_mean=1.0, service_scv=scv, control_interval=60.0, replicas_initial=c
    )
    waits = waits_of(scenario)
    assert agrees(waits, ggc.wait_mean(c, rate, 1.0, service_scv=scv), tolerance=0.15)
    assert agrees(waits > 0, ggc.probability_of_wait(c, rate, 1.0, service_scv=scv), tolerance=0.15)


@pytest.mark.parametrize("replicas, slots", [(5, 1), (2, 3)])
def test_each_request_waits_as_in_the_recursion_of_kiefer_and_wolfowitz(replicas, slots):
    """First come, first served: each takes the slot that is free first. Request by request, to rounding."""
    scenario = steady(
        0.45 * replicas * slots,
        5_000,
        service_time_mean=2.0,
        service_scv=2.0,
        replicas_initial=replicas,
        slots_per_replica=slots,
    )
    record = replay(scenario, Orders(), seed=6)
    rng, _ = np.random.default_rng(6).spawn(2)
    arrivals = scenario.arrival_times(rng)
    services = scenario.service_times(len(arrivals), rng)
    free_at = [0.0] * (replicas * slots)
    expected = []
    for arrival, service in zip(arrivals, services, strict=True):
        start = max(arrival, heapq.heappop(free_at))
        heapq.heappush(free_at, start + service)
        expected.append(start - arrival)
    assert record.waits == pytest.approx(np.array(expected), abs=1e-6)
