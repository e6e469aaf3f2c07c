"""Matches waiting requests to free slots.

The model is one queue before c slots, with late binding: a request is given a slot only when one is free,
and a free slot pulls the first who may start at once. So after every event either nobody who waits may start
or no slot is free, and the system is the M/G/c queue that the sizing computes with.

A request ends here exactly once: by `Drop`, by the `Cancelled` that takes it out of the queue, or, once
it was sent, by the `SlotFreed` of its lease. The driver reports events in the order in which they happened
and performs the actions in the order given; the same events give the same actions.

    door ─▶ admission.py ─▶ central_queue.py ─▶ placement.py ─▶ slots.py (the one ledger) ─▶ batching.py
               ▲ waits          order              ▲ which         ▲ how many                who shares a call
        predicted_wait.py                     affinity.py      offering.py ◀─ health.py, concurrency_limit.py

Arrivals that start at once and slots that nobody waits for are nearly all there is; they take the short way.
"""

from dataclasses import replace
from math import inf

from autoscaler.dispatch.actions import Action, Drop, HandOver, Preempt
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.contract import check, check_arrival
from autoscaler.dispatch.events import (
    Arrived,
    AwaitsFirstByte,
    Backpressure,
    CallEnd,
    Cancelled,
    Closing,
    Event,
    FirstByte,
    Paced,
    Probed,
    ReplicaDraining,
    ReplicaExpected,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotElsewhere,
    SlotFreed,
    TakenOver,
)
from autoscaler.dispatch.matching import Matching
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.dispatch.slots import Held, Lease
from autoscaler.domain import DropReason, Request

_DEFAULT = DispatchOptions()
_SERVED = CallEnd.SERVED


class Dispatcher(Matching):
    """Matches waiting requests to free slots. Knows no socket and reads no clock.

    Parameters
    ----------
    queue : QueueOptions
        Bounds and order of the queue.
    options : DispatchOptions
        How requests find their replica.
    """

    def __init__(self, queue: QueueOptions, options: DispatchOptions = _DEFAULT) -> None:
        super().__init__(queue, options)
        self._queue.stop_clocks(0.0)

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
        queue, slots = self._queue, self._slots
        if isinstance(event, Arrived):
            check_arrival(event.request, queue, slots)
        elif not isinstance(event, SlotFreed):
            check(event, queue, slots)
        self._now = now
        actions: list[Action] = []
        expiries = queue.expiries
        if (
            (expiries and expiries[0][0] <= now)
            or now >= self._offering.next_change
            or self._hedging is not None
        ):
            self._catch_up(event, now, actions)
        if isinstance(event, Arrived):
            self._arrived(event.request, now, actions)
        elif isinstance(event, SlotFreed):
            self._freed(event.lease, event.end, now)
            if self._preemption is not None:
                self._preemption.ended(event.lease.request_id)
        else:
            self._follow(event, now, actions)
        if queue.waiting:
            if slots.slots_free:
                self._match(now, actions)
            elif self._preemption is not None:
                actions += [Preempt(lease) for lease in self._preemption.wanted(now)]
        return actions

    def next_wakeup(self) -> float | None:
        """Earliest time [s] at which something changes although nothing happens; None if nothing will."""
        wakeup = min(self._queue.next_expiry(), self._offering.next_change)
        if self._hedging is not None:
            wakeup = min(wakeup, self._hedging.next_due())
        return wakeup if wakeup < inf else None

    # -- deciding

    def _catch_up(self, event: Event, now: float, actions: list[Action]) -> None:
        """Let happen what was due by `now` [s]."""
        if isinstance(event, Cancelled):  # before it could expire: who has left is told nothing
            self._queue.remove(event.request_id)
        for request in self._queue.take_expired(now):
            self._drop_late(request, now, actions)
        if self._offering.next_change <= now:
            self._offer(now)
        if self._hedging is not None:
            for lease in self._hedging.take_due(now):
                self._hedge(lease, now, actions)

    def _arrived(self, request: Request, now: float, actions: list[Action]) -> None:
        """Send an arrival at once if nobody waits and a slot is free; else let it wait, or refuse it."""
        if request.deadline <= now:
            self._drop_late(request, now, actions)
            return
        if self._door.closed:
            actions.append(Drop(request, DropReason.CLOSING))
            return
        line = self._lines[request.priority_class]
        if request.merge is not None:
            self._batches.arrived(request.merge, now)
        starts = self._slots.slots_free > 0 and line.running < line.slots_max
        if starts and not self._queue.waiting and self._send(request, now, actions):
            return
        refusal = self._door.let_in(request, self._slots.slots_ready, now, starts=starts)
        if refusal is not None:
            actions.append(refusal)

    def _freed(self, lease: Lease, end: CallEnd, now: float) -> Held | None:
        """Take a slot back, with what its call tells; None if it was not out any more."""
        held = self._slots.free(lease)
        if held is None:
            return None
        lease, request = held[0], held[1]
        self._lines[request.priority_class].running -= lease.slots
        served = end is _SERVED
        if request.merge is not None and not self._slots.shares(lease.call):
            self._batches.over(lease.call or lease.number, now, served=served)
        if served:
            self._services.learn(request.priority_class, now - held[2])
        if (not served or self._replicas.suspects) and self._replicas.call_ended(held, end, now):
            self._offer(now)
        if self._offering.learns and self._offering.learn(lease.replica_id, lease.request_id, end, now):
            self._offer(now)
        if self._hedging is not None and request.hedgeable:
            self._hedging.ended(held, served=served, now=now)
        if self._preemption is not None:
            self._preemption.keeps(lease)
        return held

    def _follow(self, event: Event, now: float, actions: list[Action]) -> None:
        """Take in one of the rarer events."""
        match event:
            case Cancelled(request_id):
                self._queue.remove(request_id)
                self._is_over(request_id)
            case Returned():
                self._take_back(event, now, actions)
            case AwaitsFirstByte(lease):
                held = self._slots.held(lease)
                if held is not None and self._preemption is not None:
                    self._preemption.may_lose(lease, held[1])
            case FirstByte(lease):
                if self._preemption is not None:
                    self._preemption.keeps(lease)
            case Paced(request_id, token_time):
                if self._offering.learns and self._offering.paced(request_id, token_time, now):
                    self._offer(now)
            case ReplicaExpected(at):
                self._expect(at, now, actions)
            case ReplicaReady(replica_id):
                self._door.expect_replica(None)
                self._replicas.befallen(event, now)
                self._offer(now, appeared=replica_id)
            case ReplicaDraining() | ReplicaLost() | Backpressure() | Probed():
                self._replicas.befallen(event, now)
                self._offer(now)
            case _:
                self._follow_pools(event, now, actions)

    def _follow_pools(self, event: Event, now: float, actions: list[Action]) -> None:
        """Take in what becomes of the pool, and of those that pools share."""
        match event:
            case Closing():
                self._door.closed = True
            case SlotElsewhere(classes):
                request = self._queue.pop_for(classes, now)
                if request is not None:
                    self._is_over(request.id)
                    actions.append(HandOver(replace(request, merge=None, tried=frozenset())))
            case TakenOver(request) if request.deadline <= now:
                self._drop_late(request, now, actions)
            case TakenOver(request):
                self._door.push(request, self._services.expected(request), now, returned=False)

    def _take_back(self, event: Returned, now: float, actions: list[Action]) -> None:
        """Let a request wait again, first in its class; it was let in once, so no bound refuses it now."""
        request = event.request
        preempted = self._preemption is not None and self._preemption.pending(event.lease)
        if self._freed(event.lease, event.end, now) is None:
            return
        if self._preemption is not None and preempted:
            self._preemption.spare(request.id)
        if event.exclude:
            request = replace(request, tried=request.tried | {event.lease.replica_id})
        if event.alone:
            request = replace(request, merge=None)
        if request.deadline <= now:
            self._drop_late(request, now, actions)
        elif not preempted and not event.alone and not self._retries.take(self._slots.leases_given, now):
            actions.append(Drop(request, DropReason.RETRIES_SPENT))
            self._is_over(request.id)
        else:
            self._door.push(request, self._services.expected(request), now, returned=True)

    def _expect(self, at: float | None, now: float, actions: list[Action]) -> None:
        """Note when the next replica comes; who would wait for it in vain is told so now."""
        self._door.expect_replica(at)
        if not self._slots.slots_ready:
            for drop in self._door.take_hopeless(now):
                actions.append(drop)
                self._is_over(drop.request.id)

    def _drop_late(self, request: Request, now: float, actions: list[Action]) -> None:
        """Drop one whose deadline has passed."""
        if self._slots.slots_ready:
            actions.append(Drop(request, DropReason.DEADLINE_PASSED))
        else:
            actions.append(Drop(request, DropReason.NO_CAPACITY, self._door.no_replica(now)))
        self._is_over(request.id)

    def _is_over(self, request_id: str) -> None:
        """The request has ended, however it did."""
        if self._preemption is not None:
            self._preemption.ended(request_id)
