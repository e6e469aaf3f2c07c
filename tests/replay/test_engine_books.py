"""Whatever is ordered and whatever is lost: nobody vanishes, nobody is served twice, all is paid for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.domain import Objective
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from tests.replay.scripted import Orders

LAWS = [None, BatchLine(alpha=3.0, beta=1.0), StepLine(alpha=0.02, beta=0.01, tokens_out=100, prefill=0.1)]


@settings(max_examples=60)
@given(
    orders=st.lists(st.integers(0, 6), min_size=1, max_size=12),
    law=st.sampled_from(LAWS),
    slots=st.integers(1, 4),
    supply_max=st.none() | st.integers(1, 5),
    interruption_rate=st.sampled_from([0.0, 0.02]),
    cold_start=st.floats(1.0, 60.0),
    interval=st.sampled_from([3.0, 10.0, 25.0]),
    seed=st.integers(0, 100),
)
def test_the_books_agree(orders, law, slots, supply_max, interruption_rate, cold_start, interval, seed):
    scenario = Scenario(
        np.random.default_rng(seed).poisson(3.0, 30).astype(float),
        10.0,
        service_time_mean=8.0,
        slots_per_replica=slots,
        cold_start_mean=cold_start,
        supply_max=supply_max,
        interruption_rate=interruption_rate,
        replicas_initial=2,
        objective=Objective(wait_seconds=0.0),
    )
    scenario = scenario if law is None else scenario.batched(law)
    policy = Orders({30.0 * k: wanted for k, wanted in enumerate(orders)}, interval)
    record = replay(scenario, policy, seed)

    observations = [observation for _, observation, _ in policy.seen]
    fleets = [fleet for _, _, fleet in policy.seen]
    last = observations[-1]
    door = sum(each.arrivals for each in observations)
    assert door == sum(each.completions for each in observations) + last.in_flight
    counted = last.wall_time >= scenario.duration  # all that came and broke lies before the last decision
    assert not counted or door == len(record.arrivals) + record.broken
    assert all(wait >= 0.0 for wait in record.waits)

    exist = [fleet.ready + fleet.draining for fleet in fleets]
    assert max(exist) <= (supply_max or np.inf)
    assert all(0 <= each.busy_slots_mean <= slots * 8 for each in observations)
    assert 0.0 <= record.busy_seconds <= slots * record.replica_seconds + 1e-6
    assert all(fleet.ordered == wanted for wanted, fleet in _followed(orders, policy))


def _followed(orders: list[int], policy: Orders):
    """What had been wanted at each decision but the first, with the fleet seen at the next."""
    for (before, _, _), (_, _, fleet) in zip(policy.seen, policy.seen[1:], strict=False):
        yield orders[min(int(before // 30.0), len(orders) - 1)], fleet
