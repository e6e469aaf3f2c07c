"""Events reported to the dispatcher, and its actions performed at once, in its order.

A future is resolved, a listener is told, a call is stopped. Nothing here waits.

A pool may have another that stands in for it while what it orders does not come. Then whoever would wait
here goes there as soon as a slot is free that nobody there waits for, in the order of this queue. The slot is
leased there. That the request arrived is told to the listeners of this pool, and what becomes of it to those
of the other: so each fact is told once, and demand counts where it was meant for.
"""

import asyncio
from typing import Self

from autoscaler.dispatch.actions import Action, Drop, HandOver, Hedge, Preempt, Send, SendBatch
from autoscaler.dispatch.events import (
    CallEnd,
    Event,
    ReplicaExpected,
    SlotElsewhere,
    SlotFreed,
    TakenOver,
    Tick,
)
from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Outcome, Request
from autoscaler.proxy.drive_state import DriveState
from autoscaler.proxy.grant import Dropped, Grant
from autoscaler.proxy.shared_call import SharedCall
from autoscaler.proxy.slot_use import SlotUse, Waiter

_WAKEUP_MIN = 0.001
"""A timer may fire up to the loop's resolution too early [s]; it is set again no sooner than this."""

_OUTCOME_OF_DROP = {
    DropReason.QUEUE_FULL: Outcome.REJECTED,
    DropReason.QUEUE_BYTES_FULL: Outcome.REJECTED,
    DropReason.QUEUE_SECONDS_FULL: Outcome.REJECTED,
    DropReason.PREDICTED_LATE: Outcome.REJECTED,
    DropReason.RETRIES_SPENT: Outcome.FAILED,
    DropReason.CLOSING: Outcome.REJECTED,
    DropReason.DEADLINE_PASSED: Outcome.EXPIRED,
    DropReason.NO_CAPACITY: Outcome.EXPIRED,
    DropReason.NO_REPLICA_IN_TIME: Outcome.REJECTED,
}


class ActionsPerformed(DriveState):
    """Performs what the dispatcher of a pool decides, whenever it does."""

    def _report(self, event: Event) -> None:
        self._follow(event)
        if self.gives_away:
            self._hand_over()
        for pool in self._stands_in_for:
            if pool.gives_away:
                pool._hand_over()

    def _follow(self, event: Event) -> None:
        now = self._clock.now()
        for action in self._dispatcher.handle(event, now):
            self._perform(action, now)
        self._set_timer(now)

    def _perform(self, action: Action, now: float) -> None:
        match action:
            case Send(request, lease):
                self._start(self._waiters.pop(request.id), request, lease, now)
            case SendBatch(requests, leases):
                self._start_batch(requests, leases, now)
            case Drop(request):
                self._drop(self._waiters.pop(request.id), action, now)
            case Preempt(lease):
                use = self._uses.get(lease.number)
                if use is not None and use.stop is not None:
                    stop, use.stop = use.stop, None
                    stop()
            case Hedge(request, lease, of):
                self._hedge(request, lease, self._uses.get(of.number), now)
            case HandOver(request):
                self._give(self._waiters.pop(request.id), request)

    def _start(
        self, waiter: Waiter, request: Request, lease: Lease, now: float, shared: SharedCall | None = None
    ) -> Grant:
        grant = Grant(request, lease, self._replicas[lease.replica_id], now, shared, self.name)
        for listener in self._listeners:
            listener.started(request, now, lease.slots)
        self._uses[lease.number] = SlotUse(grant, waiter.owner, item=waiter.item, came_from=waiter.came_from)
        self._end_wait(waiter, grant)
        return grant

    def _start_batch(self, requests: tuple[Request, ...], leases: tuple[Lease, ...], now: float) -> None:
        if self._merger is None:
            raise RuntimeError("requests were merged, and there is nobody to make one call of them")
        waiters = [self._waiters.pop(request.id) for request in requests]
        call = self._merger.batch([waiter.item for waiter in waiters])
        call.begin(
            [
                self._start(waiter, request, lease, now, call)
                for waiter, request, lease in zip(waiters, requests, leases, strict=True)
            ]
        )

    def _drop(self, waiter: Waiter, drop: Drop, now: float) -> None:
        for listener in self._listeners:
            listener.ended(waiter.request, _OUTCOME_OF_DROP[drop.reason], now, drop.reason)
        self._end_wait(waiter, Dropped(drop.reason, drop.retry_after))

    def _hedge(self, copy: Request, lease: Lease, first: SlotUse | None, now: float) -> None:
        grant = Grant(copy, lease, self._replicas[lease.replica_id], started_at=now, pool=self.name)
        if first is None or first.take_copy is None:
            asyncio.get_running_loop().call_soon(self._report, SlotFreed(lease, CallEnd.INCONCLUSIVE))
            return
        self._uses[lease.number] = SlotUse(grant, first.owner, is_copy=True)
        first.take_copy(grant)

    def _end_wait(self, waiter: Waiter, ending: Grant | Dropped) -> None:
        waiter.ending = ending
        if waiter.woken is not None and not waiter.woken.done():  # done: its task was cancelled a moment ago
            waiter.woken.set_result(None)

    # -- between pools

    def substitute_by(self, pool: Self) -> None:
        """Let `pool` stand in for this one, whenever `gives_away` is set."""
        self.substitute = pool
        pool._stands_in_for.append(self)

    def give_away(self, *, wanted: bool) -> None:
        """Hand requests over from now on, or no more."""
        if wanted == self.gives_away or self.substitute is None:
            return
        self.gives_away = wanted
        if wanted:
            self._report(ReplicaExpected(None))  # those that were ordered are late

    def _goes_over(self, request: Request) -> bool:
        """Whether an arrival shall go to the other pool at once, as it would wait here and not there."""
        return (
            self.substitute is not None
            and not self._dispatcher.slots_free
            and request.priority_class in self.substitute._dispatcher.welcomes()
        )

    def _hand_over(self) -> None:
        """Let go who waits here and can start there."""
        pool = self.substitute
        while pool is not None and self._dispatcher.waiting and (free := pool._dispatcher.welcomes()):
            waiting = self._dispatcher.waiting
            self._follow(SlotElsewhere(free))
            if self._dispatcher.waiting == waiting:
                return

    def _give(self, waiter: Waiter, request: Request) -> None:
        pool = self.substitute
        if pool is None:
            raise RuntimeError("a request was handed over, and no pool stands in")
        self.handed_over += 1
        waiter.is_elsewhere = True
        waiter.request, waiter.came_from = request, self.name
        waiter.item = None  # it is merged with nobody there
        pool._take(waiter)

    def _take(self, waiter: Waiter) -> None:
        """Let a request of another pool wait here; as a rule it starts at once."""
        self._waiters[waiter.request.id] = waiter
        self._follow(TakenOver(waiter.request))

    # -- time

    def _set_timer(self, now: float) -> None:
        """Be woken in time. One timer too early costs less than a new one for every event."""
        wakeup = self._dispatcher.next_wakeup()
        if wakeup is None or (self._wakeup is not None and self._wakeup <= wakeup):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = max(wakeup - now, _WAKEUP_MIN)
        self._timer, self._wakeup = asyncio.get_running_loop().call_later(delay, self._tick), wakeup

    def _tick(self) -> None:
        self._timer = self._wakeup = None
        self._report(Tick())

    # -- small things

    def _forget_if_lost(self, replica_id: str) -> None:
        """Drop the address of a replica that the ledger has forgotten."""
        if replica_id in self._lost and replica_id not in self._dispatcher.busy_by_replica():
            self._lost.discard(replica_id)
            self._replicas.pop(replica_id, None)
