"""Whatever happens, in whatever order: the laws of the dispatcher, against a model that only keeps lists.

The model learns from the actions alone what waits and what runs, so it is a second, independent ledger.
"""

from dataclasses import dataclass
from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.actions import Drop, Send
from autoscaler.dispatch.events import (
    Arrived,
    Cancelled,
    Closing,
    Event,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
    Tick,
)
from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Request

REPLICAS = ["r0", "r1", "r2", "r3"]
REQUESTS_MAX, BYTES_MAX = 5, 100
SLOTS = st.sampled_from([1, 2, 3, 5])


@dataclass
class Known:
    """A replica as the model sees it."""

    state: str
    slots: int


class DispatcherLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.dispatcher = Dispatcher(
            QueueOptions(REQUESTS_MAX, BYTES_MAX, refuse_late=False, clock_stops_max=0.0)
        )
        self.now = 0.0
        self.arrived = self.ended = self.frees_refused = 0
        self.waiting: list[Request] = []
        self.running: dict[int, Lease] = {}
        self.sent: dict[str, Request] = {}
        self.over: list[Lease] = []
        self.replicas: dict[str, Known] = {}
        self.closing = False

    # -- what happens

    @initialize(slots=st.lists(SLOTS, max_size=4))
    def some_replicas_are_there(self, slots: list[int]) -> None:
        for replica_id, count in zip(REPLICAS, slots, strict=False):
            self.replica_ready(replica_id, count)

    @rule(
        patience=st.sampled_from([-1.0, 0.0, 1.0, 2.0, 5.0, 100.0, inf]),
        body_bytes=st.sampled_from([0, 10, 60, 101]),
    )
    def arrive(self, patience: float, body_bytes: int) -> None:
        self.arrived += 1
        request = Request(f"q{self.arrived}", self.now, self.now + patience, body_bytes)
        self.handle(Arrived(request), arrival=request)

    @rule(data=st.data())
    def client_leaves(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([f"q{i}" for i in range(self.arrived + 2)]))
        gone = [request for request in self.waiting if request.id == name]
        self.waiting = [request for request in self.waiting if request.id != name]
        self.ended += len(gone)
        self.handle(Cancelled(name))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def slot_freed(self, data: st.DataObject) -> None:
        lease = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        self.over.append(lease)
        self.ended += 1
        known = self.replicas[lease.replica_id]
        if known.state == "lost" and not self.busy(lease.replica_id):
            del self.replicas[lease.replica_id]
        self.handle(SlotFreed(lease))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_call_did_not_execute(self, data: st.DataObject) -> None:
        lease = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        self.over.append(lease)
        known = self.replicas[lease.replica_id]
        if known.state == "lost" and not self.busy(lease.replica_id):
            del self.replicas[lease.replica_id]
        self.handle(Returned(lease, self.sent[lease.request_id]), returned=self.sent[lease.request_id])

    @precondition(lambda self: self.over)
    @rule(data=st.data())
    def a_call_is_returned_again(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.over))
        self.frees_refused += 1
        self.handle(Returned(lease, self.sent[lease.request_id]))

    @precondition(lambda self: self.over)
    @rule(data=st.data())
    def slot_freed_again(self, data: st.DataObject) -> None:
        self.frees_refused += 1
        self.handle(SlotFreed(data.draw(st.sampled_from(self.over))))

    @rule(replica_id=st.sampled_from(REPLICAS), slots=SLOTS)
    def replica_ready(self, replica_id: str, slots: int) -> None:
        self.handle(ReplicaReady(replica_id, slots), ready=Known("ready", slots))

    @rule(replica_id=st.sampled_from(REPLICAS))
    def replica_drains(self, replica_id: str) -> None:
        known = self.replicas.get(replica_id)
        self.handle(
            ReplicaDraining(replica_id),
            draining=known if known is not None and known.state == "ready" else None,
        )

    @rule(replica_id=st.sampled_from(REPLICAS))
    def replica_is_lost(self, replica_id: str) -> None:
        self.handle(ReplicaLost(replica_id), lost=replica_id)

    @rule(step=st.sampled_from([0.0, 0.5, 1.0, 4.0]))
    def time_passes(self, step: float) -> None:
        self.now += step

    @precondition(lambda self: self.dispatcher.next_wakeup() is not None)
    @rule()
    def the_timer_fires(self) -> None:
        self.now = max(self.now, self.dispatcher.next_wakeup() or 0.0)
        self.handle(Tick())
        assert all(request.deadline > self.now for request in self.waiting)

    @precondition(lambda self: self.arrived > 20 and not self.closing)
    @rule()
    def the_program_closes(self) -> None:
        self.handle(Closing())
        self.closing = True

    # -- what the actions may be

    def handle(
        self,
        event: Event,
        *,
        arrival: Request | None = None,
        returned: Request | None = None,
        ready: Known | None = None,
        draining: Known | None = None,
        lost: str | None = None,
    ) -> None:
        """Give the event to the dispatcher, then check and follow its actions.

        The fleet changes between the drops, which belong to the time before the event, and the sends.
        """
        actions = self.dispatcher.handle(event, self.now)
        drops = [action for action in actions if isinstance(action, Drop)]
        sends = [action for action in actions if isinstance(action, Send)]
        assert actions == [*drops, *sends]
        for drop in drops:
            if drop.request is returned:
                assert returned.deadline <= self.now
                self.ended += 1
                returned = None
            else:
                self.follow_drop(drop, arrival)
        assert all(request.deadline > self.now for request in self.waiting), "an expired one still waits"
        if arrival is not None and all(drop.request is not arrival for drop in drops):
            self.waiting.append(arrival)
        if returned is not None:
            self.waiting.insert(0, returned)
        if isinstance(event, ReplicaReady) and ready is not None:
            self.replicas[event.replica_id] = ready
        if draining is not None:
            draining.state = "draining"
        if lost in self.replicas:
            self.replicas[lost].state = "lost"
            if not self.busy(lost):
                del self.replicas[lost]
        for send in sends:
            self.follow_send(send)
        if arrival in self.waiting:
            assert len(self.waiting) <= REQUESTS_MAX, "let in over the bound"
            assert self.waiting_bytes() <= BYTES_MAX, "let in over the bound"

    def follow_drop(self, drop: Drop, arrival: Request | None) -> None:
        request = drop.request
        late = DropReason.DEADLINE_PASSED if self.slots_ready() else DropReason.NO_CAPACITY
        if request is arrival:
            if request.deadline <= self.now:
                assert drop.reason is late
            elif self.closing:
                assert drop.reason is DropReason.CLOSING
            else:
                assert self.slots_free() == 0, "refused although a slot was free"
                full = len(self.waiting) == REQUESTS_MAX
                assert drop.reason is (DropReason.QUEUE_FULL if full else DropReason.QUEUE_BYTES_FULL)
                assert full or self.waiting_bytes() + request.body_bytes > BYTES_MAX
        else:
            assert request.deadline <= self.now, "dropped although its time had not come"
            assert drop.reason is late
            self.waiting.remove(request)
        self.ended += 1

    def follow_send(self, send: Send) -> None:
        request, lease = send.request, send.lease
        assert request is self.waiting.pop(0), "not first come, first served"
        assert request.deadline > self.now, "an expired one was sent"
        assert lease.request_id == request.id
        assert lease.number not in {old.number for old in [*self.running.values(), *self.over]}
        loads = {
            replica_id: self.busy(replica_id) / known.slots
            for replica_id, known in self.replicas.items()
            if known.state == "ready" and self.busy(replica_id) < known.slots
        }
        assert loads[lease.replica_id] == min(loads.values()), "not the least loaded with a free slot"
        self.running[lease.number] = lease
        self.sent[request.id] = request

    # -- what the model knows

    def busy(self, replica_id: str) -> int:
        return sum(lease.replica_id == replica_id for lease in self.running.values())

    def slots_ready(self) -> int:
        return sum(known.slots for known in self.replicas.values() if known.state == "ready")

    def slots_free(self) -> int:
        return sum(
            max(0, known.slots - self.busy(replica_id))
            for replica_id, known in self.replicas.items()
            if known.state == "ready"
        )

    def waiting_bytes(self) -> int:
        return sum(request.body_bytes for request in self.waiting)

    # -- what holds at every step

    @invariant()
    def nobody_is_lost_or_counted_twice(self) -> None:
        assert self.arrived == self.dispatcher.waiting + self.dispatcher.running + self.ended

    @invariant()
    def no_slot_idles_while_somebody_waits(self) -> None:
        assert self.dispatcher.waiting == 0 or self.dispatcher.slots_free == 0

    @invariant()
    def the_queue_is_what_the_actions_left_of_it(self) -> None:
        assert self.dispatcher.waiting == len(self.waiting)
        assert self.dispatcher.waiting_bytes == self.waiting_bytes()
        oldest = min((request.arrived_at for request in self.waiting), default=None)
        assert self.dispatcher.oldest_arrival == oldest

    @invariant()
    def the_ledger_is_what_the_actions_made_of_it(self) -> None:
        dispatcher = self.dispatcher
        assert dispatcher.live_leases() == tuple(self.running.values())
        assert dispatcher.running == len(self.running) == sum(dispatcher.busy_by_replica().values())
        assert dispatcher.slots_ready == self.slots_ready()
        assert dispatcher.slots_free == self.slots_free()
        assert dispatcher.frees_refused == self.frees_refused
        assert {load.replica_id: (load.state, load.slots, load.busy) for load in dispatcher.replicas} == {
            replica_id: (known.state, known.slots, self.busy(replica_id))
            for replica_id, known in self.replicas.items()
        }

    @invariant()
    def the_next_wakeup_is_the_earliest_deadline(self) -> None:
        deadlines = [request.deadline for request in self.waiting if request.deadline < inf]
        assert self.dispatcher.next_wakeup() == min(deadlines, default=None)


TestDispatcherLaws = DispatcherLaws.TestCase
TestDispatcherLaws.settings = settings(max_examples=100, stateful_step_count=50)
