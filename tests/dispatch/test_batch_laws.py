"""The laws of shared calls, whatever happens in whatever order; checked from the actions alone."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.dispatch import Dispatcher, PriorityClass, QueueOptions
from autoscaler.dispatch.actions import Drop, Send, SendBatch
from autoscaler.dispatch.events import (
    Arrived,
    CallEnd,
    Cancelled,
    Event,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
    Tick,
)
from autoscaler.dispatch.lease import Lease
from autoscaler.domain import Mergeable, Request

REPLICAS = {"r0": (4, 1), "r1": (8, 2), "r2": (2, None)}
CLASSES = (PriorityClass("high", 1), PriorityClass("low", 2, starvation_bound=3.0, slots_share=0.5))


class BatchLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.dispatcher = Dispatcher(QueueOptions(requests_max=20, classes=CLASSES))
        self.now, self.arrived, self.ended = 0.0, 0, 0
        self.waiting: dict[str, Request] = {}
        self.running: dict[int, tuple[Lease, Request]] = {}
        self.ready: set[str] = set()

    @rule(
        of=st.sampled_from(["high", "low"]),
        tenant=st.sampled_from("ab"),
        bucket=st.sampled_from(["x", "y", None]),
        rows=st.integers(1, 4),
        patience=st.sampled_from([0.5, 3.0, 1e6]),
    )
    def arrive(self, of: str, tenant: str, bucket: str | None, rows: int, patience: float) -> None:
        self.arrived += 1
        merge = None if bucket is None else Mergeable(bucket, rows, 4)
        deadline = self.now + patience
        request = Request(
            f"q{self.arrived}", self.now, deadline, 1, of, tenant, merge=merge, given_up_at=deadline
        )
        self.waiting[request.id] = request
        self.handle(Arrived(request))

    @rule(data=st.data())
    def client_leaves(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([f"q{i}" for i in range(self.arrived + 1)]))
        self.ended += self.waiting.pop(name, None) is not None
        self.handle(Cancelled(name))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), end=st.sampled_from(list(CallEnd)))
    def slot_freed(self, data: st.DataObject, end: CallEnd) -> None:
        lease, _ = self.over(data)
        self.ended += 1
        self.handle(SlotFreed(lease, end))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), alone=st.booleans())
    def returned(self, data: st.DataObject, alone: bool) -> None:
        lease, request = self.over(data)
        tried = request.tried if alone else request.tried | {lease.replica_id}
        self.waiting[request.id] = replace(request, tried=tried)
        self.handle(Returned(lease, request, alone=alone, exclude=not alone))

    def over(self, data: st.DataObject) -> tuple[Lease, Request]:
        return self.running.pop(data.draw(st.sampled_from(sorted(self.running))))

    @rule(replica_id=st.sampled_from(list(REPLICAS)))
    def replica_ready(self, replica_id: str) -> None:
        self.ready.add(replica_id)
        self.handle(ReplicaReady(replica_id, *REPLICAS[replica_id]))

    @rule(replica_id=st.sampled_from(list(REPLICAS)), lost=st.booleans())
    def replica_goes(self, replica_id: str, lost: bool) -> None:
        self.ready.discard(replica_id)
        self.handle(ReplicaLost(replica_id) if lost else ReplicaDraining(replica_id))

    @rule(passed=st.sampled_from([0.0, 0.4, 2.0]))
    def time_passes(self, passed: float) -> None:
        self.now += passed
        self.handle(Tick())

    def handle(self, event: Event) -> None:
        for action in self.dispatcher.handle(event, self.now):
            match action:
                case Drop(request):
                    del self.waiting[request.id]
                    self.ended += 1
                case Send(request, lease):
                    self.began((request,), (lease,))
                case SendBatch(requests, leases):
                    self.a_batch_is_of_equals(requests, leases)
                    self.began(requests, leases)

    def began(self, requests: tuple[Request, ...], leases: tuple[Lease, ...]) -> None:
        for request, lease in zip(requests, leases, strict=True):
            assert self.waiting.pop(request.id).id == lease.request_id == request.id
            assert lease.replica_id in self.ready
            assert lease.number not in self.running
            self.running[lease.number] = (lease, request)
        calls_max = REPLICAS[leases[0].replica_id][1]
        if calls_max is not None:
            assert len(self.calls(leases[0].replica_id)) <= calls_max

    def a_batch_is_of_equals(self, requests: tuple[Request, ...], leases: tuple[Lease, ...]) -> None:
        assert len(requests) > 1
        merges = [request.merge for request in requests]
        assert len({merge.bucket for merge in merges}) == 1
        assert sum(merge.rows for merge in merges) <= 4
        assert [merge.rows for merge in merges] == [lease.slots for lease in leases]
        assert {(lease.replica_id, lease.call) for lease in leases} == {
            (leases[0].replica_id, leases[0].number)
        }
        assert REPLICAS[leases[0].replica_id][1] is not None

    def calls(self, replica_id: str) -> set[int]:
        return {
            lease.call or lease.number for lease, _ in self.running.values() if lease.replica_id == replica_id
        }

    @invariant()
    def nobody_is_lost(self) -> None:
        assert self.arrived == len(self.waiting) + len(self.running) + self.ended
        assert self.dispatcher.waiting == len(self.waiting)
        assert self.dispatcher.running == len(self.running)

    @invariant()
    def the_sums_are_those_of_the_replicas(self) -> None:
        loads = self.dispatcher.replicas
        assert self.dispatcher.slots_free == sum(load.free for load in loads)
        for load in loads:
            held = [lease for lease, _ in self.running.values() if lease.replica_id == load.replica_id]
            assert load.busy == sum(lease.slots for lease in held)
        by_class = self.dispatcher.running_by_class()
        for name in by_class:
            assert by_class[name] == sum(
                lease.slots for lease, request in self.running.values() if request.priority_class == name
            )

    @invariant()
    def no_replica_idles_while_somebody_waits_who_may_start(self) -> None:
        if any(r.priority_class == "high" and not r.tried for r in self.waiting.values()):
            assert self.dispatcher.slots_free == 0

    def teardown(self) -> None:
        for lease, _ in list(self.running.values()):
            del self.running[lease.number]
            self.ended += 1
            self.handle(SlotFreed(lease))
        assert self.dispatcher.running == len(self.running)


BatchLaws.TestCase.settings = settings(max_examples=60, stateful_step_count=60)
TestBatchLaws = BatchLaws.TestCase
