"""The laws of the dispatcher with everything switched on at once: classes, tenants, ceilings, slow start,
backpressure, health, affinity, exclusion, preemption and hedges, and clocks that stand.

`test_dispatcher_laws.py` knows the one right order of a plain queue. Here only what must hold in any order is
checked, again from the actions alone: nobody is lost or ends twice, no lease is given that the replica may
not have, and no slot idles while somebody waits who could have it.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.dispatch import Dispatcher, DispatchOptions, PriorityClass, QueueOptions
from autoscaler.dispatch.actions import Drop, Hedge, Preempt, Send
from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.events import (
    Arrived,
    AwaitsFirstByte,
    Backpressure,
    CallEnd,
    Cancelled,
    Event,
    FirstByte,
    Paced,
    Probed,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
    Tick,
)
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.dispatch.lease import Lease, ReplicaState
from autoscaler.dispatch.retry_budget import RetryBudgetOptions
from autoscaler.domain import Request

REPLICAS = ["r0", "r1", "r2"]
CLASSES = (
    PriorityClass("urgent", 1, preempts=True),
    PriorityClass("normal", 2, starvation_bound=3.0, slots_floor=0.2),
    PriorityClass("low", 3, starvation_bound=6.0, slots_share=0.5, queue_share=0.5, preemptible=True),
)


class EverythingLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.dispatcher = Dispatcher(
            QueueOptions(requests_max=8, bytes_max=500, classes=CLASSES, clock_stops_max=5.0),
            DispatchOptions(
                concurrency=ConcurrencyOptions(slow_start=4.0, recovery=2.0),
                retries=RetryBudgetOptions(share=0.5, rate=0.1, burst=2.0),
                affinity=AffinityOptions(),
                hedging=HedgeOptions(quantile=0.5, share=1.0),
            ),
        )
        self.now, self.arrived, self.ended = 0.0, 0, 0
        self.waiting: dict[str, Request] = {}
        self.running: dict[int, tuple[Lease, Request]] = {}
        self.copies: set[int] = set()
        self.awaits: set[int] = set()
        self.preempted: set[int] = set()
        self.ready: dict[str, int] = {}

    # -- what happens

    @rule(
        name=st.sampled_from(["urgent", "normal", "low"]),
        tenant=st.sampled_from(["a", "b"]),
        patience=st.sampled_from([0.5, 3.0, 20.0]),
        key=st.sampled_from(["", "k1", "k2"]),
        service_time=st.sampled_from([0.0, 0.5, 4.0]),
        tried=st.frozensets(st.sampled_from(REPLICAS), max_size=1),
    )
    def arrive(
        self, name: str, tenant: str, patience: float, key: str, service_time: float, tried: frozenset[str]
    ) -> None:
        self.arrived += 1
        request = Request(
            f"q{self.arrived}",
            self.now,
            self.now + patience,
            60,
            name,
            tenant,
            service_time,
            key,
            True,
            tried,
        )
        self.waiting[request.id] = request
        self.handle(Arrived(request))

    @rule(data=st.data())
    def client_leaves(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([f"q{i}" for i in range(self.arrived + 1)]))
        self.ended += self.waiting.pop(name, None) is not None
        self.handle(Cancelled(name))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), end=st.sampled_from([CallEnd.SERVED, *CallEnd]))
    def slot_freed(self, data: st.DataObject, end: CallEnd) -> None:
        lease, _ = self.over(data)
        self.ended += lease.number not in self.copies
        self.handle(SlotFreed(lease, end))

    @precondition(lambda self: set(self.running) - self.copies)
    @rule(data=st.data(), end=st.sampled_from([CallEnd.INCONCLUSIVE, CallEnd.REFUSED]), exclude=st.booleans())
    def a_call_did_not_execute(self, data: st.DataObject, end: CallEnd, exclude: bool) -> None:
        lease, request = self.over(data, with_copies=False)
        tried = request.tried | {lease.replica_id} if exclude else request.tried
        self.waiting[request.id] = replace(request, tried=tried)
        self.handle(Returned(lease, request, end, exclude))

    def over(self, data: st.DataObject, *, with_copies: bool = True) -> tuple[Lease, Request]:
        numbers = set(self.running) if with_copies else set(self.running) - self.copies
        number = data.draw(st.sampled_from(sorted(numbers)))
        self.awaits.discard(number)
        return self.running.pop(number)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def first_byte(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.running)))
        lease = self.running[number][0]
        if number in self.awaits:
            self.awaits.discard(number)
            self.handle(FirstByte(lease))
        else:
            self.awaits.add(number)
            self.handle(AwaitsFirstByte(lease))

    @rule(replica_id=st.sampled_from(REPLICAS), retry_after=st.sampled_from([0.0, 1.0, 5.0]))
    def replica_is_busy(self, replica_id: str, retry_after: float) -> None:
        self.handle(Backpressure(replica_id, retry_after))

    @rule(replica_id=st.sampled_from(REPLICAS), ok=st.booleans())
    def probed(self, replica_id: str, ok: bool) -> None:
        self.handle(Probed(replica_id, ok))

    @rule(replica_id=st.sampled_from(REPLICAS), slots=st.sampled_from([1, 2, 5]), learns=st.booleans())
    def replica_ready(self, replica_id: str, slots: int, learns: bool) -> None:
        self.ready[replica_id] = slots
        self.handle(ReplicaReady(replica_id, slots, learns_from=1 if learns else None))

    @rule(number=st.integers(0, 40), token_time=st.sampled_from([0.001, 10.0]))
    def paced(self, number: int, token_time: float) -> None:
        self.handle(Paced(f"q{number}", token_time))

    @rule(replica_id=st.sampled_from(REPLICAS), lost=st.booleans())
    def replica_gone(self, replica_id: str, lost: bool) -> None:
        self.ready.pop(replica_id, None)
        self.handle(ReplicaLost(replica_id) if lost else ReplicaDraining(replica_id))

    @rule(step=st.sampled_from([0.1, 0.5, 2.0, 9.0]))
    def time_passes(self, step: float) -> None:
        """As it does where a driver sets its timer: every wake-up is kept."""
        until = self.now + step
        while (due := self.dispatcher.next_wakeup()) is not None and due <= until:
            assert due >= self.now or due == self.dispatcher.next_wakeup()
            self.now = max(self.now, due)
            self.handle(Tick())
            again = self.dispatcher.next_wakeup()
            assert again is None or again > self.now, "a wake-up after which nothing has changed"
        self.now = until

    # -- what the actions may be

    def handle(self, event: Event) -> None:
        for action in self.dispatcher.handle(event, self.now):
            match action:
                case Send(request, lease):
                    first = self.waiting.pop(request.id)
                    assert (request.priority_class, request.tenant) == (first.priority_class, first.tenant)
                    assert request.deadline > self.now
                    self.given(lease, request)
                case Hedge(request, lease, of):
                    assert not self.waiting, "a copy although somebody waits"
                    assert of.number in self.running and of.replica_id != lease.replica_id
                    self.copies.add(lease.number)
                    self.given(lease, request)
                case Drop(request, _, retry_after):
                    del self.waiting[request.id]
                    assert retry_after is None or retry_after >= 0
                    self.ended += 1
                case Preempt(lease):
                    assert lease.number in self.awaits
                    assert self.running[lease.number][1].priority_class == "low"
                    assert any(request.priority_class == "urgent" for request in self.waiting.values())
                    self.preempted.add(lease.number)

    def given(self, lease: Lease, request: Request) -> None:
        assert lease.request_id == request.id
        assert lease.replica_id in self.ready, "sent to one that is not ready"
        others = set(self.ready) - request.tried
        offered = {load.replica_id for load in self.dispatcher.replicas if load.slots}
        assert lease.replica_id not in request.tried or not others & offered, "tried, with others untried"
        self.running[lease.number] = (lease, request)

    # -- what holds at every step

    @invariant()
    def nobody_is_lost_or_counted_twice(self) -> None:
        assert self.dispatcher.waiting == len(self.waiting)
        assert {lease.number for lease in self.dispatcher.live_leases()} == set(self.running)
        originals = len(set(self.running) - self.copies)
        assert self.arrived == len(self.waiting) + originals + self.ended
        assert self.dispatcher.waiting_bytes == 60 * len(self.waiting)

    @invariant()
    def classes_add_up(self) -> None:
        for name in ("urgent", "normal", "low"):
            held = [request for _, request in self.running.values() if request.priority_class == name]
            waits = [request for request in self.waiting.values() if request.priority_class == name]
            assert self.dispatcher.running_by_class()[name] == len(held)
            assert self.dispatcher.waiting_by_class()[name] == len(waits)

    @invariant()
    def no_replica_holds_or_is_offered_more_than_it_has(self) -> None:
        for load in self.dispatcher.replicas:
            if load.state is ReplicaState.READY:
                assert 0 <= load.slots <= self.ready[load.replica_id]
        free = sum(load.free for load in self.dispatcher.replicas)
        assert self.dispatcher.slots_free == free

    @invariant()
    def no_slot_idles_while_somebody_waits_who_could_have_it(self) -> None:
        if not self.dispatcher.slots_free:
            return
        low_max = max(1, self.dispatcher.slots_ready // 2)
        low_is_full = self.dispatcher.running_by_class()["low"] >= low_max
        loads = [load for load in self.dispatcher.replicas if load.state is ReplicaState.READY and load.slots]
        for request in self.waiting.values():
            untried = [load for load in loads if load.replica_id not in request.tried] or loads
            could = any(load.free for load in untried)
            if not (request.priority_class == "low" and low_is_full):
                assert not could, "waits although a slot is free"

    @invariant()
    def somebody_who_is_ready_is_always_offered_unless_spared(self) -> None:
        if self.ready and not self.dispatcher.slots_ready:
            assert self.dispatcher.next_wakeup() is not None


TestEverythingLaws = EverythingLaws.TestCase
TestEverythingLaws.settings = settings(max_examples=80, stateful_step_count=50)
