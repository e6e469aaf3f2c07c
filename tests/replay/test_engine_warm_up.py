"""Family F13: a fresh replica is slow at first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.replicas import SimulatedReplica
from autoscaler.replay.run import replay
from tests.replay.scripted import Orders, scripted


def fresh(warm_at: float, slowness: float) -> SimulatedReplica:
    return SimulatedReplica("r1", 0.0, 0.0, warm_at, slowness)


def test_work_is_slower_by_the_factor_until_the_replica_is_warm():
    replica = fresh(warm_at=60.0, slowness=5.0)
    assert replica.ready_to_do(2.0, now=10.0) == 20.0
    assert replica.ready_to_do(2.0, now=60.0) == 62.0
    assert replica.ready_to_do(4.0, now=50.0) == pytest.approx(62.0)  # 2 s of work in the last 10 s, then 2


@given(
    warm_at=st.floats(0, 100), slowness=st.floats(1, 10), now=st.floats(0, 200), work=st.floats(0.001, 100)
)
def test_work_done_is_what_was_to_be_done(warm_at, slowness, now, work):
    replica = fresh(warm_at, slowness)
    assert replica.work_done(now, replica.ready_to_do(work, now)) == pytest.approx(work, abs=1e-9)


def test_requests_on_a_fresh_replica_take_longer():
    policy = Orders({10.0: 1})
    scenario = scripted(
        [1.0, 25.0, 45.0],
        [2.0, 2.0, 2.0],
        replicas_initial=0,
        cold_start_mean=10.0,
        cold_start_cv=0.0,
        warm_up=20.0,
        warm_up_slowness=5.0,
    )
    record = replay(scenario, policy)
    # Ready at 20 s: the first ends at 30 s, the second half done at 40 s ... and the third meets a warm one.
    assert record.waits.tolist() == pytest.approx([19.0, 5.0, 0.0])
    served = [observation.service_time_sum for _, observation, _ in policy.seen]
    assert served == pytest.approx([0.0, 0.0, 10.0, 10.0, 2.0, 0.0])


def test_steps_on_a_fresh_replica_take_longer_for_all_that_share_them():
    """A token takes 1 s alone, 5 s while it is fresh. From 20 s on the first gets 2 of its 4; then two share,
    get one each until the replica is warm at 40 s, and one each in the 2 s after."""
    policy = Orders({10.0: 1})
    scenario = scripted(
        [1.0, 30.0],
        [4.0, 2.0],
        batching=StepLine(alpha=0.0, beta=1.0, tokens_out=4),
        slots_per_replica=2,
        replicas_initial=0,
        cold_start_mean=10.0,
        cold_start_cv=0.0,
        warm_up=20.0,
        warm_up_slowness=5.0,
    )
    record = replay(scenario, policy)
    assert record.waits.tolist() == pytest.approx([19.0, 0.0])
    served = sum(observation.service_time_sum for _, observation, _ in policy.seen)
    assert served == pytest.approx(22.0 + 12.0)
