"""Matches waiting requests to free slots.

The model is one queue before c slots, with late binding: a request is given a slot only when one is free,
and a free slot pulls the first who waits at once. So after every event either nobody waits or no slot is
free, and the system is the M/G/c queue that the sizing computes with.

A request ends here exactly once: by `Drop`, by the `Cancelled` that takes it out of the queue, or, once
it was sent, by the `SlotFreed` of its lease. The driver reports events in the order in which they happened
and performs the actions in the order given; the same events give the same actions.
"""

from collections import Counter
from collections.abc import Mapping
from math import isnan

from autoscaler.dispatch.actions import Action, Drop, Send
from autoscaler.dispatch.admission import Admission, QueueOptions, wait_behind
from autoscaler.dispatch.central_queue import CentralQueue
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
from autoscaler.dispatch.slots import Lease, ReplicaLoad, Slots
from autoscaler.domain import DropReason, Request


class Dispatcher:
    """Matches waiting requests to free slots. Knows no socket and reads no clock."""

    def __init__(self, options: QueueOptions) -> None:
        self._admission = Admission(options)
        self._queue = CentralQueue()
        self._slots = Slots()
        self._now = 0.0

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in one event at time `now` [s]; return what the driver must do, in order.

        Whatever the event, requests whose deadline has come are dropped first, and never sent. After
        `Cancelled` no action concerns that request any more. A `Cancelled`, `SlotFreed` or `Returned` that
        comes too late changes nothing: drivers race.

        Raises
        ------
        ValueError
            If the event breaks a contract: the id of an arrival is alive already, or a number is
            impossible. Nothing has changed then.
        """
        self._check(event)
        self._now = now
        if isinstance(event, Cancelled):
            self._queue.remove(event.request_id)  # before it could expire: who has left is told nothing
        actions = self._drop_expired(now)
        match event:
            case Arrived(request):
                actions += self._admit(request, now)
            case SlotFreed(lease):
                self._slots.free(lease)
            case Returned(lease, request):
                actions += self._take_back(lease, request, now)
            case ReplicaReady(replica_id, slots):
                self._slots.ready(replica_id, slots)
            case ReplicaDraining(replica_id):
                self._slots.drain(replica_id)
            case ReplicaLost(replica_id):
                self._slots.lose(replica_id)
            case Closing():
                self._admission.close()
            case Cancelled() | Tick():
                pass
        return actions + self._match()

    def next_wakeup(self) -> float | None:
        """Earliest time [s] at which something changes although nothing happens; None if nothing will."""
        return self._queue.earliest_deadline()

    def expected_wait(self, service_time_mean: float) -> float | None:
        """How long an arrival now would wait for its slot, in the mean; for an honest `Retry-After`.

        Parameters
        ----------
        service_time_mean : float
            E[S] >= 0 of one request in its slot [s].

        Returns
        -------
        float or None
            0 if a slot is free, else by `wait_behind` [s]; None if no replica is ready to wait for.
        """
        if self._slots.any_free:
            return 0.0
        servers = self._slots.slots_ready
        return wait_behind(len(self._queue), servers, service_time_mean) if servers else None

    # -- what the driver and the observer read

    @property
    def waiting(self) -> int:
        """Queue depth now [requests]."""
        return len(self._queue)

    @property
    def waiting_bytes(self) -> int:
        """Memory that the bodies of those who wait hold [bytes]."""
        return self._queue.bytes

    @property
    def oldest_arrival(self) -> float | None:
        """When the first in the queue arrived [s]; None if nobody waits."""
        return self._queue.oldest_arrival

    @property
    def running(self) -> int:
        """Requests in service: live leases, also those on draining and lost replicas [requests]."""
        return self._slots.running

    @property
    def slots_ready(self) -> int:
        """Slots of ready replicas, busy or free [1]."""
        return self._slots.slots_ready

    @property
    def slots_free(self) -> int:
        """Slots of ready replicas that are free [1]."""
        return self._slots.slots_free

    @property
    def frees_refused(self) -> int:
        """`SlotFreed` events of leases that were not live [1]; above 0 a driver has a fault."""
        return self._slots.frees_refused

    @property
    def closing(self) -> bool:
        """Whether nothing new is let in any more."""
        return self._admission.closed

    @property
    def replicas(self) -> tuple[ReplicaLoad, ...]:
        """Every replica that is known: state, slots and load, in the order in which they came."""
        return self._slots.replicas

    def busy_by_replica(self) -> Mapping[str, int]:
        """Live leases by replica id, of every replica that is known [1]."""
        return self._slots.busy_by_replica()

    def live_leases(self) -> tuple[Lease, ...]:
        """Every lease that is not given back yet, in order of dispatch."""
        return self._slots.live_leases()

    def __repr__(self) -> str:
        states = Counter(replica.state.value for replica in self.replicas)
        parts = [
            f"waiting={self.waiting}",
            f"running={self.running}",
            f"slots={self.slots_ready - self.slots_free}/{self.slots_ready}",
            f"replicas={','.join(f'{n} {state}' for state, n in states.items()) or 0}",
        ]
        if self.oldest_arrival is not None:
            parts.append(f"oldest={self._now - self.oldest_arrival:.1f}s")
        if self.closing:
            parts.append("closing")
        return f"<Dispatcher {' '.join(parts)}>"

    # -- deciding

    def _check(self, event: Event) -> None:
        """Tell a broken contract before anything has changed, so that no action is lost."""
        match event:
            case Arrived(request):
                if request.id in self._queue or self._slots.holds(request.id):
                    raise ValueError(f"request id {request.id!r} is alive already; give each request its own")
                if isnan(request.deadline):
                    raise ValueError(
                        f"need a deadline, got NaN for request {request.id!r}; infinity means none"
                    )
                if request.body_bytes < 0:
                    raise ValueError(
                        f"need body_bytes >= 0, got {request.body_bytes} for request {request.id!r}"
                    )
            case Returned(lease, request) if lease.request_id != request.id:
                raise ValueError(f"lease of {lease.request_id!r} cannot return request {request.id!r}")
            case ReplicaReady(replica_id, slots) if slots < 1:
                raise ValueError(f"need slots >= 1, got {slots} for replica {replica_id!r}")

    def _drop_expired(self, now: float) -> list[Action]:
        expired = self._queue.take_expired(now)
        if not expired:
            return []
        reason = self._why_late()
        return [Drop(request, reason) for request in expired]

    def _why_late(self) -> DropReason:
        return DropReason.DEADLINE_PASSED if self._slots.slots_ready else DropReason.NO_CAPACITY

    def _admit(self, request: Request, now: float) -> list[Action]:
        """Put an arrival into the queue, from where it is sent at once if a slot is free; or refuse it."""
        if request.deadline <= now:
            return [Drop(request, self._why_late())]
        reason = self._admission.refusal(
            request,
            starts_at_once=self._slots.any_free,  # a slot is free only while nobody waits
            waiting=len(self._queue),
            waiting_bytes=self._queue.bytes,
        )
        if reason is not None:
            return [Drop(request, reason)]
        self._queue.push(request)
        return []

    def _take_back(self, lease: Lease, request: Request, now: float) -> list[Action]:
        """Let a request wait again, before all others; it was let in once, so no bound refuses it now."""
        if not self._slots.free(lease):
            return []
        if request.deadline <= now:
            return [Drop(request, self._why_late())]
        self._queue.push_first(request)
        return []

    def _match(self) -> list[Action]:
        """Lease free slots to those who wait, in their order, until either has run out."""
        sends: list[Action] = []
        while (request := self._queue.first) is not None:
            lease = self._slots.take(request)
            if lease is None:
                break
            self._queue.remove(request.id)
            sends.append(Send(request, lease))
        return sends
