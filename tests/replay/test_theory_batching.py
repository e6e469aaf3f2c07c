"""The replay against queueing theory: service in batches, processor sharing, continuous batching."""

from dataclasses import fields

import numpy as np
import pytest

from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.bulk import batches_at_once
from autoscaler.queueing.continuous_batching import StepLine, continuous_batching
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from tests.replay.scripted import Orders, steady
from tests.replay.steady_state import agrees


def shown(scenario: Scenario, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Waits by request; mean times in a slot, and busy slots, by two hundredth of the time."""
    policy = Orders(interval=scenario.duration / 200)
    record = replay(scenario, policy, seed=seed)
    observations = [observation for _, observation, _ in policy.seen]
    times = [each.service_time_sum / each.completions for each in observations if each.completions]
    return record.waits, np.array(times), np.array([each.busy_slots_mean for each in observations])


@pytest.mark.parametrize("rate", [20.0, 120.0, 280.0])
def test_batches_of_one_server_wait_as_bailey_says(rate):
    """M/D^[8]/1, exact; capacity is 8 / 0.026 s = 308/s."""
    line = BatchLine(alpha=0.010, beta=0.002)
    scenario = steady(
        rate, 24_000, service_time_mean=0.01, slots_per_replica=8, control_interval=60.0
    ).batched(line)
    waits, _, busy = shown(scenario)
    queue = batches_at_once(1, rate, line, batch_max=8, service_scv=0.0)
    assert agrees(waits, queue.wait_mean)
    assert agrees(waits > 0, queue.probability_of_wait)
    assert agrees(busy, rate * (queue.response_mean - queue.wait_mean))


@pytest.mark.parametrize("scv", [0.0, 1.0, 4.0])
def test_sharing_a_replica_takes_a_mean_time_that_no_law_of_work_changes(scv):
    """M/G/1 with processor sharing: E[T] = E[S] / (1 - rho), for every law of S (Kleinrock 1976, ch. 4)."""
    rho, tokens, step = 0.6, 100, 0.01
    line = StepLine(alpha=0.0, beta=step, tokens_out=tokens, tokens_out_scv=scv)
    scenario = steady(
        rho / (tokens * step), 60_000, service_time_mean=1.0, slots_per_replica=500, control_interval=60.0
    ).batched(line)
    waits, times, busy = shown(scenario)
    assert waits.max() == 0.0
    tokens_mean = float(scenario.work(200_000, np.random.default_rng(1)).mean())  # whole ones, at least 1
    rho *= tokens_mean / tokens
    assert agrees(busy, rho / (1 - rho))
    assert agrees(times, tokens_mean * step / (1 - rho), tolerance=0.01)  # pieces weigh alike


class Geometric(Scenario):
    """Numbers of tokens for which the chain of continuous batching is exact."""

    def work(self, n_requests, rng):
        return rng.geometric(1 / self.batching.tokens_out, n_requests).astype(float)


@pytest.mark.parametrize("rate, slots", [(2.5, 64), (2.7, 16)])
def test_continuous_batching_holds_and_delays_as_many_as_its_chain_says(rate, slots):
    """Prompts and a constant part of the step included; with and without requests that wait."""
    line = StepLine(alpha=0.010, beta=0.001, tokens_out=150, prefill=0.05)
    scenario = steady(
        rate, 50_000, service_time_mean=1.0, slots_per_replica=slots, control_interval=60.0, batching=line
    )
    waits, _, busy = shown(
        Geometric(**{field.name: getattr(scenario, field.name) for field in fields(Scenario)})
    )
    queue = continuous_batching(1, slots, rate, line)
    assert agrees(busy, queue.requests_mean)
    if queue.probability_of_wait > 0.01:
        assert agrees(waits > 0, queue.probability_of_wait)
    else:
        assert np.mean(waits > 0) < 0.01
