import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing import waiting
from autoscaler.queueing.continuous_batching import (
    StepLine,
    continuous_batching,
    slots_for_time_per_token,
)


def simulate(slots, arrival_rate, line, requests, tokens, rng):
    """One replica, step by step: waits, times to the first token [s], and mean time per token [s]."""
    arrivals = np.cumsum(rng.exponential(1 / arrival_rate, requests))
    waits, firsts = np.zeros(requests), np.zeros(requests)
    left, entered, ended, now, made, spent = [], 0, 0, 0.0, 0, 0.0
    while ended < requests:
        if not left and arrivals[entered] > now:
            now = arrivals[entered]
        new = []
        while len(left) < slots and entered < requests and arrivals[entered] <= now:
            waits[entered] = now - arrivals[entered]
            new.append(entered)
            left.append(tokens(rng))
            entered += 1
        step = line.prefill * len(new) + line.alpha + line.beta * len(left)
        now += step
        made, spent = made + len(left), spent + step * len(left)
        firsts[new] = now - arrivals[new]
        left = [n - 1 for n in left if n > 1]
        ended = entered - len(left)
    return waits, firsts, spent / made


# Without a constant part of the step, a replica is a processor-sharing server: with steps of 1/µ in all for
# each request, M/M/1. With one slot a replica, and no growth, M/M/c.
def test_one_slot_a_replica_is_erlang_c():
    queue = continuous_batching(4, 1, 2.0, StepLine(alpha=0.1, beta=0.0, tokens_out=10))
    assert queue.probability_of_wait == pytest.approx(waiting.probability_of_wait(4, 2.0, 1.0))
    assert queue.wait_mean == pytest.approx(waiting.wait_mean(4, 2.0, 1.0))
    assert queue.wait_tail(0.7) == pytest.approx(waiting.wait_tail(4, 2.0, 1.0, 0.7))


def test_steps_that_only_grow_share_a_processor():
    """One replica, alpha = 0: the number present is geometric, whatever the slots."""
    queue = continuous_batching(1, 400, 0.8, StepLine(alpha=0.0, beta=0.01, tokens_out=100))
    assert queue.requests_mean == pytest.approx(4.0, rel=1e-9)


def test_steps_that_do_not_grow_are_servers_without_end():
    """One replica, beta = 0 and more slots than are ever used: Poisson with the offered load."""
    queue = continuous_batching(1, 200, 5.0, StepLine(alpha=0.02, beta=0.0, tokens_out=200))
    assert queue.requests_mean == pytest.approx(20.0, rel=1e-9)
    assert queue.time_per_token_mean == pytest.approx(0.02)


@pytest.mark.parametrize("slots, share, prefill", [(8, 0.7, 0.0), (8, 0.75, 0.02), (32, 0.6, 0.02)])
@pytest.mark.parametrize("scv", [1.0, 0.0])
def test_it_is_nearly_as_simulated_step_by_step(slots, share, prefill, scv):
    line = StepLine(0.02, 0.001, 50, prefill, tokens_out_scv=scv)
    rate = share * float(line.throughput(slots))
    tokens = (lambda rng: rng.geometric(1 / 50)) if scv else (lambda rng: 50)
    waits, firsts, per_token = simulate(slots, rate, line, 25_000, tokens, np.random.default_rng(2))
    queue = continuous_batching(1, slots, rate, line)
    # The simulated wait includes the step that is running.
    step = queue.time_per_token_mean
    assert queue.wait_mean == pytest.approx(
        waits.mean() - step / 2, rel=0.25 if scv else 0.35, abs=0.1 * step
    )
    assert queue.first_token_mean == pytest.approx(firsts.mean(), rel=0.25)
    assert queue.time_per_token_mean == pytest.approx(per_token, rel=0.03)
    late = np.quantile(firsts, 0.95)
    assert queue.first_token_tail(1.35 * late) <= 0.05 <= queue.first_token_tail(late / 1.35)


# alpha, beta, tokens_out, prefill
LINES = st.builds(
    StepLine, st.floats(0.001, 0.1), st.floats(0.0001, 0.01), st.floats(1, 500), st.floats(0, 0.5)
)


@given(LINES, st.integers(1, 8), st.integers(1, 64), st.floats(0.05, 0.98))
def test_what_goes_in_is_served(line, replicas, slots, share):
    rate = share * replicas * float(line.throughput(slots))
    queue = continuous_batching(replicas, slots, rate, line)
    # Little's law: requests in service = rate x time in service, tokens_out times the mean time per token.
    assert queue.requests_mean * replicas == pytest.approx(
        rate * line.tokens_out * queue.time_per_token_mean, rel=1e-6
    )
    assert 0 <= queue.occupancy <= 1
    assert line.time_per_token(1) * (1 - 1e-9) <= queue.time_per_token_mean
    assert queue.time_per_token_mean <= line.time_per_token(slots) * (1 + 1e-9)


@given(LINES, st.integers(1, 8), st.integers(1, 64), st.floats(0.05, 0.98), st.floats(0.05, 10))
def test_tails_fall_from_one_and_another_replica_lowers_them(line, replicas, slots, share, t):
    rate = share * replicas * float(line.throughput(slots))
    here, further = (continuous_batching(r, slots, rate, line) for r in (replicas, replicas + 1))
    assert here.first_token_tail(0.0) == pytest.approx(1.0)
    assert 0 <= here.first_token_tail(t) <= here.first_token_tail(t / 2) + 1e-12
    assert further.wait_tail(t) <= here.wait_tail(t) + 1e-12
    assert here.time_per_token_tail(0.0) == pytest.approx(1.0)
    assert here.time_per_token_tail(float(line.time_per_token(slots)) * 1.001) == 0.0


@given(LINES, st.floats(0.001, 1.0))
def test_the_slots_for_a_time_per_token_keep_it_and_one_more_does_not(line, objective):
    slots = slots_for_time_per_token(line, objective)
    assert slots == 0 or line.time_per_token(slots) <= objective * (1 + 1e-6)
    assert line.time_per_token(slots + 1) > objective * (1 - 1e-6)


def test_at_capacity_the_wait_is_endless():
    line = StepLine(0.02, 0.001, 50)
    queue = continuous_batching(2, 8, 2 * float(line.throughput(8)), line)
    assert (queue.wait_mean, queue.first_token_mean, queue.first_token_tail(9.0)) == (math.inf, math.inf, 1.0)


def test_a_hundred_thousand_slots_are_no_more_than_an_array():
    queue = continuous_batching(1000, 128, 30_000.0, StepLine(0.02, 0.001, 20))
    assert 0 < queue.occupancy < 1


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: StepLine(0.0, 0.0, 10), "not both of the first 0"),
        (lambda: StepLine(0.1, 0.0, 0.5), "tokens_out >= 1"),
        (lambda: StepLine(0.1, 0.0, 10, 0.0, 10.1), "tokens_out_scv <= 10"),
        (lambda: continuous_batching(0, 1, 1.0, StepLine(0.1, 0.0, 10)), "replicas, slots >= 1"),
        (lambda: continuous_batching(1, 1, 0.0, StepLine(0.1, 0.0, 10)), "arrival_rate > 0"),
        (lambda: slots_for_time_per_token(StepLine(0.1, 0.0, 10), 0.2), "grows with the requests"),
    ],
)
def test_beyond_its_range_it_says_so(call, text):
    with pytest.raises(ValueError, match=text):
        call()
