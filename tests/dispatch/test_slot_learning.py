"""The dispatcher with replicas whose slots are learned: what they are offered follows what is learned."""

from heapq import heappop, heappush
from itertools import count

import pytest

from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.dispatch.actions import Action
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.events import (
    Arrived,
    Backpressure,
    CallEnd,
    Paced,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    SlotFreed,
)
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.dispatch.lease import Lease
from tests.dispatch.queues import a_request

TARGET = 0.100


class Pool:
    """Replicas of known laws, kept full: a request takes s(b) with b in service as it begins."""

    def __init__(self, options: SlotOptions | None = None, **more: object) -> None:
        slots = options or SlotOptions(service_time=TARGET)
        self.dispatcher = Dispatcher(QueueOptions(), DispatchOptions(slots=slots, **more))
        self.laws: dict[str, tuple[float, float]] = {}
        self.now = 0.0
        self._ends: list[tuple[float, int, Lease]] = []
        self._numbers = count()

    def ready(
        self, replica_id: str, *, alpha=0.020, beta=0.002, slots=64, learns_from: int | None = 1
    ) -> None:
        self.laws[replica_id] = (alpha, beta)
        self._perform(
            self.dispatcher.handle(ReplicaReady(replica_id, slots, learns_from=learns_from), self.now)
        )

    def serve(self, seconds: float) -> None:
        """Let arrivals keep every slot busy for so long."""
        end = self.now + seconds
        self._fill()
        while self._ends and self._ends[0][0] <= end:
            self.now, _, lease = heappop(self._ends)
            self._perform(self.dispatcher.handle(SlotFreed(lease), self.now))
            self._fill()
        self.now = end

    def tell(self, event: object) -> None:
        self._perform(self.dispatcher.handle(event, self.now))

    def slots(self) -> dict[str, int]:
        return {load.replica_id: load.slots for load in self.dispatcher.replicas}

    def _fill(self) -> None:
        while self.dispatcher.slots_free:
            request = a_request(f"r{next(self._numbers)}", arrived_at=self.now)
            self._perform(self.dispatcher.handle(Arrived(request), self.now))

    def _perform(self, actions: list[Action]) -> None:
        busy = self.dispatcher.busy_by_replica()
        for action in actions:
            alpha, beta = self.laws[action.lease.replica_id]
            ends_at = self.now + alpha + beta * busy[action.lease.replica_id]
            heappush(self._ends, (ends_at, action.lease.number, action.lease))


def test_each_replica_learns_what_it_does_well_with():
    pool = Pool()
    pool.ready("quick", beta=0.001)  # 80 keep 100 ms, and 64 it may have
    pool.ready("slow", beta=0.005)  # 16
    pool.serve(30.0)
    slots = pool.slots()
    assert slots["quick"] == pytest.approx(64, rel=0.1)
    assert slots["slow"] == pytest.approx(16, rel=0.2)
    assert pool.dispatcher.slots_ready == sum(slots.values())
    assert pool.dispatcher.slots_learned == slots["slow"]


def test_one_that_does_not_learn_keeps_its_slots():
    pool = Pool()
    pool.ready("learns")
    pool.ready("fixed", slots=3, learns_from=None)
    pool.serve(10.0)
    assert pool.slots()["fixed"] == 3
    assert pool.slots()["learns"] > 16


def test_a_pool_in_which_nobody_learns_has_learned_nothing():
    pool = Pool()
    pool.ready("fixed", slots=3, learns_from=None)
    pool.serve(5.0)
    assert pool.dispatcher.slots_learned is None


def test_a_new_replica_begins_with_what_is_typical():
    pool = Pool()
    pool.ready("a")
    pool.serve(20.0)
    typical = pool.slots()["a"]
    pool.ready("b")
    assert pool.slots()["b"] == typical > 16


def test_taken_back_from_draining_it_knows_its_slots():
    pool = Pool()
    pool.ready("a", beta=0.005)
    pool.serve(20.0)
    known = pool.slots()["a"]
    pool.tell(ReplicaDraining("a"))
    pool.serve(1.0)
    pool.ready("a", beta=0.005)
    assert pool.slots() == {"a": known}


def test_one_that_is_lost_is_forgotten_and_what_was_typical_is_not():
    pool = Pool()
    pool.ready("a", beta=0.005)
    pool.serve(20.0)
    known = pool.slots()["a"]
    pool.tell(ReplicaLost("a"))
    assert pool.dispatcher.slots_learned == known
    pool.ready("a")
    assert pool.slots()["a"] == known


def test_a_busy_replica_is_cut_below_what_it_has_learned():
    pool = Pool(concurrency=ConcurrencyOptions(recovery=1000.0))
    pool.ready("a")
    pool.serve(20.0)
    learned = pool.dispatcher.slots_learned
    pool.tell(Backpressure("a"))
    assert pool.dispatcher.slots_ready == learned // 2


def test_a_new_replica_learns_behind_its_slow_start():
    pool = Pool(concurrency=ConcurrencyOptions(slow_start=5.0))
    pool.ready("a")
    pool.serve(30.0)
    assert pool.slots()["a"] == pytest.approx(40, rel=0.2)


def test_failed_calls_are_not_learned_from():
    pool = Pool()
    pool.ready("a")
    for number in range(100):
        pool.dispatcher.handle(Arrived(a_request(f"x{number}")), float(number))
        [lease] = pool.dispatcher.live_leases()
        pool.dispatcher.handle(SlotFreed(lease, CallEnd.INCONCLUSIVE), number + 0.001)
    assert pool.slots() == {"a": 1}


def test_tokens_may_be_told_after_their_request_is_over():
    pool = Pool(SlotOptions(token_time=0.050))
    pool.ready("a")
    for number in range(400):
        now = float(number)
        pool.dispatcher.handle(Arrived(a_request(f"x{number}", arrived_at=now)), now)
        for lease in pool.dispatcher.live_leases():
            pool.dispatcher.handle(SlotFreed(lease), now + 0.5)
        pool.dispatcher.handle(Paced(f"x{number}", 0.021), now + 0.6)
        pool.dispatcher.handle(Paced(f"unheard of {number}", 9.0), now + 0.6)
    assert pool.slots() == {"a": 2}  # alone it never shows more than that


def test_to_begin_with_more_than_there_may_be_is_refused():
    with pytest.raises(ValueError, match=r"1 <= learns_from <= slots, got 5 of 4 for replica 'a'"):
        Pool().ready("a", slots=4, learns_from=5)
