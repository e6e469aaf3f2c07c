"""The driver of one dispatcher: the only thing that touches it.

Whoever wants a slot calls `acquire` and gets a `Grant` or a `Dropped`, whatever the dispatcher decides and
whenever. Everything that happens is reported to the dispatcher as an event, in order, and what it answers is
performed at once: a future is resolved, a listener is told. Nothing here waits except `acquire`.

A request is told to the listeners as arrived, perhaps started and freed, and ended, each once, also when
its handler is cancelled at the worst moment: before the decision, after it, or in the same turn of the loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaler.dispatch import Dispatcher
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
from autoscaler.dispatch.slots import Lease, ReplicaLoad, ReplicaState
from autoscaler.domain import DropReason, Outcome, Request
from autoscaler.ports import Clock, Replica, RequestListener
from autoscaler.proxy.grant import Dropped, Grant
from autoscaler.proxy.snapshot import PoolSnapshot, ReplicaSnapshot

_WAKEUP_MIN = 0.001
"""A timer may fire up to the loop's resolution too early [s]; it is set again no sooner than this."""

_REFUSAL_PAUSE = 1.0
"""So long a replica that refused a connection gets nothing, unless its platform speaks first [s]."""

_BREAK_PAUSE = 0.25
"""So long one whose connection broke during a call gets nothing, unless its platform speaks first [s]."""

_SERVICES_REMEMBERED = 50
"""The mean service time follows about so many last services [1]."""

_OUTCOME_OF_DROP = {
    DropReason.QUEUE_FULL: Outcome.REJECTED,
    DropReason.QUEUE_BYTES_FULL: Outcome.REJECTED,
    DropReason.CLOSING: Outcome.REJECTED,
    DropReason.DEADLINE_PASSED: Outcome.EXPIRED,
    DropReason.NO_CAPACITY: Outcome.EXPIRED,
}


@dataclass(slots=True)
class _Waiter:
    request: Request
    owner: "asyncio.Task[object] | None"
    woken: "asyncio.Future[None]"
    ending: Grant | Dropped | None = None


class PoolDrive:
    """Drives the dispatcher of one pool; a `ports.ReplicaListener`.

    Parameters
    ----------
    name : str
        Of the pool.
    dispatcher : Dispatcher
        Nobody else reports events to it.
    clock : Clock
        Monotonic seconds for every event.
    listeners : sequence of RequestListener
        Told every fact, in order.
    """

    def __init__(
        self, name: str, dispatcher: Dispatcher, clock: Clock, listeners: Sequence[RequestListener] = ()
    ) -> None:
        self.name = name
        self._dispatcher = dispatcher
        self._clock = clock
        self._listeners = tuple(listeners)
        self._replicas: dict[str, Replica] = {}
        self._lost: set[str] = set()
        self._withheld: dict[str, asyncio.TimerHandle] = {}
        self._waiters: dict[str, _Waiter] = {}
        self._running: dict[int, tuple[Grant, asyncio.Task[object] | None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup: float | None = None
        self._service_time_mean: float | None = None
        self._services = 0
        self._slots_leaked = 0

    # -- requests

    async def acquire(self, request: Request) -> Grant | Dropped:
        """Wait for a slot; return it, or why there is none.

        Whoever gets a `Grant` owes one `release`. When the wait is cancelled nothing is owed: the place in
        the queue is given up, or the slot that came in the same moment is given back.
        """
        now = self._clock.now()
        for listener in self._listeners:
            listener.arrived(request, now)
        waiter = self._new_waiter(request, asyncio.current_task())
        self._report(Arrived(request))
        return await self._ending_of(waiter)

    async def retry(self, grant: Grant, *, refused: bool) -> Grant | Dropped:
        """Trade the slot for another, first in the queue, for a request that provably did not execute.

        A replica that `refused` the connection gets nothing for a moment. If it is gone, its platform will
        have said so by then; if not, it is tried again. What is owed is as after `acquire`.
        """
        owner = self._running.pop(grant.lease.number)[1]
        now = self._clock.now()
        for listener in self._listeners:
            listener.returned(grant.request, now)
        if refused:
            self._withhold(grant.replica.id, _REFUSAL_PAUSE)
        waiter = self._new_waiter(grant.request, owner)
        self._report(Returned(grant.lease, grant.request))
        self._forget_if_lost(grant.replica.id)
        return await self._ending_of(waiter)

    def release(self, grant: Grant, outcome: Outcome) -> None:
        """Give the slot back and end the request; the second time nothing happens. Never waits."""
        if self._running.pop(grant.lease.number, None) is None:
            return
        now = self._clock.now()
        service_time = now - grant.started_at
        if outcome is Outcome.COMPLETED:
            self._learn(service_time)
        for listener in self._listeners:
            listener.slot_freed(service_time, now)
            listener.ended(grant.request, outcome, now)
        self._report(SlotFreed(grant.lease))
        self._forget_if_lost(grant.replica.id)

    def spare(self, grant: Grant) -> None:
        """Give the replica of a call that broke nothing for a moment: its process may be ending.

        Its platform knows within that moment; without it, what waits would be sent after what was lost.
        """
        self._withhold(grant.replica.id, _BREAK_PAUSE)

    def close(self) -> None:
        """Let nothing new in; what waits and what runs goes on."""
        self._report(Closing())

    def reconcile(self) -> int:
        """Free every slot whose request is over without having released it; return how many.

        There should be none, ever: each is a fault of this program, and counted in `slots_leaked`.
        """
        leaked = 0
        for lease in self._dispatcher.live_leases():
            grant, owner = self._running.get(lease.number, (None, None))
            if grant is not None and owner is not None and owner.done():
                self.release(grant, Outcome.FAILED)
                leaked += 1
            elif grant is None:
                self._report(SlotFreed(lease))
                leaked += 1
        self._slots_leaked += leaked
        return leaked

    # -- replicas: ports.ReplicaListener

    def replica_ready(self, replica: Replica) -> None:
        """It takes requests from now on."""
        self._stop_withholding(replica.id)
        self._replicas[replica.id] = replica
        self._lost.discard(replica.id)
        self._report(ReplicaReady(replica.id, replica.slots))

    def replica_draining(self, replica_id: str) -> None:
        """It gets nothing new from now on."""
        self._stop_withholding(replica_id)
        self._report(ReplicaDraining(replica_id))

    def replica_lost(self, replica_id: str) -> None:
        """It is gone, or not ready; it is forgotten as soon as nothing runs on it."""
        self._stop_withholding(replica_id)
        self._report(ReplicaLost(replica_id))
        self._lost.add(replica_id)
        self._forget_if_lost(replica_id)

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id, from the ledger."""
        return self._dispatcher.busy_by_replica()

    # -- what others read

    @property
    def idle(self) -> bool:
        """Whether nobody waits and nothing runs."""
        return not self._dispatcher.waiting and not self._dispatcher.running

    def snapshot(self) -> PoolSnapshot:
        """Everything about the pool at this moment, read from the ledger."""
        dispatcher, now = self._dispatcher, self._clock.now()
        oldest = dispatcher.oldest_arrival
        return PoolSnapshot(
            pool=self.name,
            waiting=dispatcher.waiting,
            oldest_wait=0.0 if oldest is None else now - oldest,
            busy=dispatcher.running,
            slots=dispatcher.slots_ready,
            slots_leaked=self._slots_leaked,
            expected_wait=self._expected_wait(),
            replicas=tuple(self._replica_snapshot(load) for load in dispatcher.replicas),
        )

    def __repr__(self) -> str:
        return f"<PoolDrive {self.name} {self._dispatcher!r}>"

    # -- events to the dispatcher, its actions performed

    def _report(self, event: Event) -> None:
        now = self._clock.now()
        for action in self._dispatcher.handle(event, now):
            match action:
                case Send(request, lease):
                    self._start(self._waiters.pop(request.id), lease, now)
                case Drop(request, reason):
                    self._drop(self._waiters.pop(request.id), reason, now)
        self._set_timer(now)

    def _start(self, waiter: _Waiter, lease: Lease, now: float) -> None:
        grant = Grant(waiter.request, lease, self._replicas[lease.replica_id], started_at=now)
        for listener in self._listeners:
            listener.started(waiter.request, now)
        self._running[lease.number] = (grant, waiter.owner)
        self._end_wait(waiter, grant)

    def _drop(self, waiter: _Waiter, reason: DropReason, now: float) -> None:
        for listener in self._listeners:
            listener.ended(waiter.request, _OUTCOME_OF_DROP[reason], now, reason)
        self._end_wait(waiter, Dropped(reason, self._expected_wait()))

    def _new_waiter(self, request: Request, owner: "asyncio.Task[object] | None") -> _Waiter:
        waiter = _Waiter(request, owner, asyncio.get_running_loop().create_future())
        self._waiters[request.id] = waiter
        return waiter

    async def _ending_of(self, waiter: _Waiter) -> Grant | Dropped:
        try:
            while waiter.ending is None:
                await waiter.woken
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise
        return waiter.ending

    def _end_wait(self, waiter: _Waiter, ending: Grant | Dropped) -> None:
        waiter.ending = ending
        if not waiter.woken.done():  # it is when its task was cancelled a moment ago
            waiter.woken.set_result(None)

    def _abandon(self, waiter: _Waiter) -> None:
        """The wait was cancelled: undo what the dispatcher has, or will have, decided."""
        if isinstance(waiter.ending, Grant):
            self.release(waiter.ending, Outcome.CANCELLED)
        elif waiter.ending is None:
            del self._waiters[waiter.request.id]
            self._report(Cancelled(waiter.request.id))
            now = self._clock.now()
            for listener in self._listeners:
                listener.ended(waiter.request, Outcome.CANCELLED, now)

    def _withhold(self, replica_id: str, pause: float) -> None:
        """Give a replica nothing for a moment, unless it gets nothing anyway."""
        ready = [load.replica_id for load in self._dispatcher.replicas if load.state is ReplicaState.READY]
        if replica_id in ready:
            self._report(ReplicaDraining(replica_id))
            again = asyncio.get_running_loop().call_later(pause, self._offer_again, replica_id)
            self._withheld[replica_id] = again

    def _offer_again(self, replica_id: str) -> None:
        del self._withheld[replica_id]
        self._report(ReplicaReady(replica_id, self._replicas[replica_id].slots))

    def _stop_withholding(self, replica_id: str) -> None:
        """Its platform has said what it is."""
        again = self._withheld.pop(replica_id, None)
        if again is not None:
            again.cancel()

    # -- time

    def _set_timer(self, now: float) -> None:
        wakeup = self._dispatcher.next_wakeup()
        if wakeup == self._wakeup:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._wakeup = None, wakeup
        if wakeup is not None:
            delay = max(wakeup - now, _WAKEUP_MIN)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = self._wakeup = None
        self._report(Tick())

    # -- small things

    def _learn(self, service_time: float) -> None:
        """Follow the mean service time; only the expected wait is computed from it."""
        self._services = min(self._services + 1, _SERVICES_REMEMBERED)
        mean = self._service_time_mean or 0.0
        self._service_time_mean = mean + (service_time - mean) / self._services

    def _expected_wait(self) -> float | None:
        if self._service_time_mean is None:
            return None
        return self._dispatcher.expected_wait(self._service_time_mean)

    def _replica_snapshot(self, load: ReplicaLoad) -> ReplicaSnapshot:
        url = self._replicas[load.replica_id].url
        return ReplicaSnapshot(load.replica_id, url, load.state, load.slots, load.busy)

    def _forget_if_lost(self, replica_id: str) -> None:
        """Drop the address of a replica that the ledger has forgotten."""
        if replica_id in self._lost and replica_id not in self._dispatcher.busy_by_replica():
            self._lost.discard(replica_id)
            self._replicas.pop(replica_id, None)
