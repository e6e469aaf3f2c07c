"""How a replica shares what waits with the one that is free next."""

import heapq
import random
from itertools import count
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions, batching
from autoscaler.dispatch.actions import Send, SendBatch
from autoscaler.dispatch.batch_share import rows_to_take
from autoscaler.dispatch.batching import BatchOptions
from autoscaler.dispatch.events import Arrived, ReplicaReady, SlotFreed
from autoscaler.dispatch.row_rate import RowRate
from autoscaler.domain import Mergeable, Request
from autoscaler.queueing.batch_line import BatchLine

FAST, SLOW = BatchLine(0.020, 0.002), BatchLine(0.040, 0.004)


def test_equals_share_alike_if_the_other_is_free_at_once():
    assert rows_to_take(8, 32, FAST, FAST, remaining=0.0, arrival_rate=0.0) == 4


def test_a_slow_one_leaves_more_to_a_fast_one():
    assert rows_to_take(8, 32, SLOW, FAST, 0.0, 0.0) < 4 < rows_to_take(8, 32, FAST, SLOW, 0.0, 0.0)


def test_nothing_is_left_for_one_that_is_busy_for_long():
    assert rows_to_take(8, 32, FAST, FAST, remaining=1.0, arrival_rate=0.0) == 8


def test_less_is_left_where_more_will_arrive():
    few, many = (rows_to_take(12, 32, FAST, FAST, 0.010, rate) for rate in (0.0, 400.0))
    assert few < many


def test_in_an_overload_everybody_takes_what_it_can():
    assert rows_to_take(60, 32, FAST, FAST, 0.0, 0.0) == 32


def answered_after(
    left: int, waiting: int, own: BatchLine, other: BatchLine, remaining: float, arriving: float
):
    """The sum that the rule makes small."""
    taken, later = waiting - left, left + arriving
    return taken * float(own.service_time(taken)) + later * (remaining + float(other.service_time(later)))


lines = st.builds(BatchLine, st.floats(0.001, 0.1), st.floats(0.0005, 0.01))


@given(
    waiting=st.integers(1, 32),
    own=lines,
    other=lines,
    remaining=st.floats(0, 0.2),
    arrival_rate=st.floats(0, 50),
)
def test_no_other_share_would_answer_sooner(waiting, own, other, remaining, arrival_rate):
    took = rows_to_take(waiting, 32, own, other, remaining, arrival_rate)
    assert 1 <= took <= waiting
    arriving = arrival_rate * remaining
    if waiting + arriving < 48:
        sums = [answered_after(left, waiting, own, other, remaining, arriving) for left in range(waiting)]
        assert answered_after(waiting - took, waiting, own, other, remaining, arriving) <= min(sums) * (
            1 + 1e-9
        )


def response_times(replicas: dict[str, BatchLine], rate: float, requests: int) -> np.ndarray:
    """Poisson arrivals before replicas that serve in batches; times in seconds, the first tenth left out."""
    rng, serial = random.Random(5), count()
    dispatcher = Dispatcher(QueueOptions(requests_max=100_000), DispatchOptions(batching=BatchOptions(inf)))
    for name in replicas:
        dispatcher.handle(ReplicaReady(name, 32, 1), 0.0)
    events: list = []
    at = 0.0
    for number in range(requests):
        at += rng.expovariate(rate)
        request = Request(str(number), at, inf, merge=Mergeable("b", 1, 32))
        heapq.heappush(events, (at, next(serial), [Arrived(request)]))
    arrived, times = np.zeros(requests), np.zeros(requests)
    while events:
        now, _, due = heapq.heappop(events)
        for event in due:
            if isinstance(event, SlotFreed):
                number = int(event.lease.request_id)
                times[number] = now - arrived[number]
            else:
                arrived[int(event.request.id)] = now
            for action in dispatcher.handle(event, now):
                leases = (action.lease,) if isinstance(action, Send) else action.leases
                assert isinstance(action, Send | SendBatch)
                end = now + float(replicas[leases[0].replica_id].service_time(len(leases)))
                heapq.heappush(events, (end, next(serial), [SlotFreed(lease) for lease in leases]))
    return times[requests // 10 :]


@pytest.mark.parametrize(
    "replicas, gain", [({"r0": FAST, "r1": FAST}, 0.95), ({"r0": FAST, "r1": SLOW}, 0.85)]
)
def test_sharing_shortens_the_longest_response_times(replicas, gain, monkeypatch):
    capacity = sum(32 / float(line.service_time(32)) for line in replicas.values())
    shared = response_times(replicas, 0.6 * capacity, 6000)
    monkeypatch.setattr(batching, "rows_to_take", lambda waiting, rows_max, *_: min(waiting, rows_max))
    greedy = response_times(replicas, 0.6 * capacity, 6000)
    assert np.quantile(shared, 0.99) <= gain * np.quantile(greedy, 0.99)


def test_the_rate_of_rows_follows_the_last_seconds():
    rate = RowRate()
    for i in range(1000):
        rate.arrived(2, i * 0.01)
    assert rate.at(10.0) == pytest.approx(200, rel=0.02)
    rate.arrived(1, 100.0)
    assert rate.at(102.0) == pytest.approx(0.5)
