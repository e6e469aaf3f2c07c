"""Service in batches and continuous batching, by hand."""

import numpy as np
import pytest

from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.clairvoyant import clairvoyant_gpu_hours
from autoscaler.replay.run import replay
from tests.replay.scripted import Orders, scripted, steady

PAIRS = {"batching": BatchLine(alpha=1.0, beta=0.5), "slots_per_replica": 2}
SHARED = {"batching": StepLine(alpha=0.0, beta=1.0, tokens_out=4), "slots_per_replica": 3}


def test_a_free_replica_starts_at_once_and_takes_what_waits_when_the_batch_ends():
    """Batches of 1, 2, 1 in 1.5, 2 and 1.5 s: they start at 0, 1.5 and 3.5 s."""
    policy = Orders()
    record = replay(scripted([0.0, 0.1, 0.2, 0.3], [1, 1, 1, 1], **PAIRS), policy)
    assert record.waits.tolist() == pytest.approx([0.0, 1.4, 1.3, 3.2])
    assert policy.seen[0][1].service_time_sum == pytest.approx(1.5 + 2 * 2.0 + 1.5)


def test_what_comes_while_a_batch_runs_waits_for_the_replica_that_is_free_first():
    record = replay(scripted([0.0, 1.0, 1.2], [1, 1, 1], replicas_initial=2, **PAIRS), Orders())
    assert record.waits.tolist() == pytest.approx([0.0, 0.0, 0.3])


def test_arrivals_of_one_moment_share_a_batch_when_a_replica_becomes_ready():
    policy = Orders({10.0: 1})
    scenario = scripted(
        [1.0, 2.0, 3.0], [1, 1, 1], replicas_initial=0, cold_start_mean=5.0, cold_start_cv=0.0, **PAIRS
    )
    assert replay(scenario, policy).waits.tolist() == pytest.approx([14.0, 13.0, 14.0])


def test_a_batch_is_finished_by_a_replica_that_drains_and_no_other_begins_there():
    slow = {"batching": BatchLine(alpha=20.0, beta=0.0), "slots_per_replica": 2}
    policy = Orders({10.0: 1, 30.0: 2})
    scenario = scripted([0.0, 1.0, 5.0, 6.0, 7.0], [1] * 5, replicas_initial=2, cold_start_mean=500.0, **slow)
    record = replay(scenario, policy)
    # The first drains at 10 s and ends at 20 s; the other takes two at 21 s and the last at 41 s.
    assert record.waits.tolist() == pytest.approx([0.0, 0.0, 16.0, 15.0, 34.0])
    assert record.replica_seconds == pytest.approx(60.0 + 20.0 + 30.0)


def test_a_draining_replica_that_is_taken_back_goes_on_with_its_batch_size():
    slow = {"batching": BatchLine(alpha=20.0, beta=0.0), "slots_per_replica": 2}
    record = replay(
        scripted([0.0, 12.0, 13.0], [1] * 3, replicas_initial=1, **slow),
        Orders({10.0: 0, 11.0: 1}, interval=1.0),
    )
    assert record.waits.tolist() == pytest.approx([0.0, 8.0, 7.0])


def test_all_in_a_replica_share_its_steps():
    """One token a second over all. Alone for 2 s; then each of two gets half: 2 tokens by 6 s; and so on."""
    policy = Orders()
    record = replay(scripted([0.0, 2.0, 2.5], [4.0, 2.0, 20.0], **SHARED), policy)
    # At 2.5 s: 1.75 and 1.75 are missing, so both leave 5.25 s later, at 7.75 s; the third is then alone.
    assert record.waits.tolist() == [0.0, 0.0, 0.0]
    first = policy.seen[0][1]
    assert (first.completions, first.service_time_sum) == (2, pytest.approx(7.75 + 5.75))
    third = sum(observation.service_time_sum for _, observation, _ in policy.seen[1:])
    assert third == pytest.approx(26.0 - 2.5)  # all 26 tokens are made by 26 s


def test_no_more_than_the_slots_share_and_the_rest_waits():
    record = replay(scripted([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 1.0], **SHARED), Orders())
    assert record.waits.tolist() == pytest.approx([0.0, 0.0, 0.0, 3.0])


def test_the_load_on_a_batching_pool_is_as_large_as_a_full_replica_says():
    scenario = scripted([], [], slots_per_replica=10).batched(BatchLine(alpha=1.0, beta=0.1))
    assert (scenario.service_time_mean, scenario.service_scv) == (pytest.approx(2.0), 0.0)
    line = StepLine(alpha=0.01, beta=0.001, tokens_out=100, prefill=0.2, tokens_out_scv=0.5)
    scenario = scripted([], [], slots_per_replica=10).batched(line)
    assert scenario.service_time_mean == pytest.approx(100 * (0.01 + 0.01 + 0.2 * 10 / 100))
    assert scenario.service_scv == 0.5


def test_tokens_follow_their_law():
    scenario = steady(1.0, 10, slots_per_replica=10, service_time_mean=1.0).batched(
        StepLine(0.01, 0.001, tokens_out=200, tokens_out_scv=0.6)
    )
    tokens = scenario.work(100_000, np.random.default_rng(1))
    assert tokens.min() >= 1
    assert tokens.mean() == pytest.approx(200, rel=0.01)
    assert tokens.var() / tokens.mean() ** 2 == pytest.approx(0.6, rel=0.03)


def test_the_clairvoyant_bound_of_batches_is_the_larger_of_what_all_alone_and_what_full_ones_take():
    line = BatchLine(alpha=5.0, beta=1.0)  # alone 6 s, eight 13 s
    together = scripted([1.0] * 16, [1] * 16, service_time_mean=1.0, slots_per_replica=8).batched(line)
    assert clairvoyant_gpu_hours(together) * 3600 == pytest.approx(2 * 13.0)
    alone = scripted([1.0], [1], service_time_mean=1.0, slots_per_replica=8).batched(line)
    assert clairvoyant_gpu_hours(alone) * 3600 == pytest.approx(10.0)  # a replica for one step
