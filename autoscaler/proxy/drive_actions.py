"""Events reported to the dispatcher, and its actions performed at once, in its order.

A future is resolved, a listener is told, a call is stopped. Nothing here waits.
"""

import asyncio

from autoscaler.dispatch.actions import Action, Drop, Hedge, Preempt, Send, SendBatch
from autoscaler.dispatch.events import CallEnd, Event, SlotFreed, Tick
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

    def _start(
        self, waiter: Waiter, request: Request, lease: Lease, now: float, shared: SharedCall | None = None
    ) -> Grant:
        grant = Grant(request, lease, self._replicas[lease.replica_id], now, shared)
        for listener in self._listeners:
            listener.started(request, now, lease.slots)
        self._uses[lease.number] = SlotUse(grant, waiter.owner, item=waiter.item)
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
        grant = Grant(copy, lease, self._replicas[lease.replica_id], started_at=now)
        if first is None or first.take_copy is None:
            asyncio.get_running_loop().call_soon(self._report, SlotFreed(lease, CallEnd.INCONCLUSIVE))
            return
        self._uses[lease.number] = SlotUse(grant, first.owner, is_copy=True)
        first.take_copy(grant)

    def _end_wait(self, waiter: Waiter, ending: Grant | Dropped) -> None:
        waiter.ending = ending
        if waiter.woken is not None and not waiter.woken.done():  # done: its task was cancelled a moment ago
            waiter.woken.set_result(None)

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
