"""The driver of one dispatcher: the only thing that touches it.

Whoever wants a slot calls `acquire` and gets a `Grant` or a `Dropped`, whatever the dispatcher decides and
whenever. Everything that happens is reported to the dispatcher as an event, in order, and what it answers is
performed at once (`drive_actions`). Nothing here waits except `acquire` and `retry`.

A request is told to the listeners as arrived, perhaps started and freed, and ended, each once, also when
its handler is cancelled at the worst moment: before the decision, after it, or in the same turn of the loop.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from autoscaler.dispatch.events import (
    Arrived,
    AwaitsFirstByte,
    Backpressure,
    CallEnd,
    Cancelled,
    Closing,
    FirstByte,
    Paced,
    Probed,
    ReplicaDraining,
    ReplicaExpected,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
)
from autoscaler.domain import Outcome, Request, TokenUse
from autoscaler.ports import Replica
from autoscaler.proxy.drive_actions import ActionsPerformed
from autoscaler.proxy.grant import Dropped, Grant
from autoscaler.proxy.slot_use import Waiter

_END_OF_OUTCOME = {
    Outcome.COMPLETED: CallEnd.SERVED,
    Outcome.FAILED: CallEnd.BROKE,
}
"""What an outcome says of the replica, where nothing more exact is known; the others say nothing."""


class PoolDrive(ActionsPerformed):
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
    merger : Merger or None
        Makes one call of several requests; None: none is ever merged.
    """

    # -- requests

    async def acquire(self, request: Request, item: Any = None) -> Grant | Dropped:
        """Wait for a slot; return it, or why there is none. `item` is what of it can be merged.

        Whoever gets a `Grant` owes one `release`, to the drive of the pool whose slot it is, which may be the
        one that stands in for this one. When the wait is cancelled nothing is owed: the place in the queue is
        given up, or the slot that came in the same moment is given back.
        """
        now = self._clock.now()
        for listener in self._listeners:
            listener.arrived(request, now)
        waiter = self._new_waiter(request, asyncio.current_task(), item)
        if self.gives_away and self._goes_over(request):
            self._give(self._waiters.pop(request.id), replace(request, merge=None))
        else:
            self._report(Arrived(request))
        return await self._ending_of(waiter)

    async def retry(self, grant: Grant, *, refused: bool = False, alone: bool = False) -> Grant | Dropped:
        """Trade the slot for another, first in the queue, for a request that provably did not execute.

        If its replica `refused` the connection, another is tried where there is one. A call that was stopped
        for a more urgent request trades its slot too, and so does one that shall be served `alone` after all.
        What is owed is as after `acquire`.
        """
        use = self._uses.pop(grant.lease.number)
        now = self._clock.now()
        for listener in self._listeners:
            listener.returned(grant.request, now, grant.lease.slots)
        waiter = self._new_waiter(grant.request, use.owner, use.item)
        waiter.came_from = use.came_from
        if grant.shared is not None:
            grant.shared.leave(grant.request.id)
        end = CallEnd.REFUSED if refused else CallEnd.INCONCLUSIVE
        self._report(Returned(grant.lease, grant.request, end, exclude=refused, alone=alone))
        self._forget_if_lost(grant.replica.id)
        return await self._ending_of(waiter)

    def release(self, grant: Grant, outcome: Outcome, end: CallEnd | None = None) -> None:
        """Give the slot back and end the request; the second time nothing happens. Never waits.

        `end` says what the call tells of its replica, where the outcome of the request does not.
        """
        use = self._uses.pop(grant.lease.number, None)
        if use is None:
            return
        now = self._clock.now()
        if not use.is_copy:
            for listener in self._listeners:
                listener.slot_freed(now - grant.started_at, now, grant.lease.slots)
                listener.ended(grant.request, outcome, now)
        if grant.shared is not None:
            grant.shared.leave(grant.request.id)
        if not use.given_up:
            end = end or _END_OF_OUTCOME.get(outcome, CallEnd.INCONCLUSIVE)
            self._report(SlotFreed(grant.lease, end))
            self._forget_if_lost(grant.replica.id)

    def answered(self, grant: Grant, use: TokenUse) -> None:
        """Tell how many tokens the answer took that came by this slot; also after `release`."""
        now = self._clock.now()
        for listener in self._listeners:
            listener.answered(grant.request, use, now)
        if self._dispatcher.learns_pace and use.is_streamed and use.time_per_token > 0:
            self._report(Paced(grant.request.id, use.time_per_token))

    def give_up(self, grant: Grant) -> None:
        """Free the slot of a call that lost to the copy of its request, which goes on."""
        use = self._uses.get(grant.lease.number)
        if use is not None and not use.given_up:
            use.given_up = True
            self._report(SlotFreed(grant.lease, CallEnd.INCONCLUSIVE))
            self._forget_if_lost(grant.replica.id)

    def busy(self, grant: Grant, retry_after: float) -> None:
        """Tell that the replica said that it has too much to do, and perhaps for how long [s]."""
        self._report(Backpressure(grant.replica.id, retry_after))

    def let_stop(self, grant: Grant, stop: Callable[[], None]) -> None:
        """Allow the call to be stopped by `stop` for a more urgent request, until `first_byte`."""
        use = self._uses.get(grant.lease.number)
        if use is not None:
            use.stop = stop
            self._report(AwaitsFirstByte(grant.lease))

    def first_byte(self, grant: Grant) -> None:
        """Tell that the answer has begun."""
        use = self._uses.get(grant.lease.number)
        if use is not None and use.stop is not None:
            use.stop = None
            self._report(FirstByte(grant.lease))

    def let_hedge(self, grant: Grant, take_copy: Callable[[Grant], None] | None) -> None:
        """Allow a second slot for the same request; it is released like the first. None: no more."""
        use = self._uses.get(grant.lease.number)
        if use is not None:
            use.take_copy = take_copy

    def close(self) -> None:
        """Let nothing new in; what waits and what runs goes on."""
        self._report(Closing())

    def reconcile(self, calls: Mapping[str, int] | None = None) -> int:
        """Free every slot whose request is over without having released it; return how many.

        There should be none, ever: each is a fault of this program, and counted in `slots_leaked`. Given the
        live calls by replica, it is noted how many there are without a slot; there should be none of those
        either.
        """
        leaked = 0
        for lease in self._dispatcher.live_leases():
            use = self._uses.get(lease.number)
            if use is None:
                self._report(SlotFreed(lease, CallEnd.INCONCLUSIVE))
                leaked += 1
            elif use.owner is not None and use.owner.done():
                self.release(use.grant, Outcome.FAILED, CallEnd.INCONCLUSIVE)
                leaked += 1
        self._slots_leaked += leaked
        busy = self._dispatcher.busy_by_replica()
        self._difference = leaked + sum(
            max(0, count - busy.get(replica_id, 0)) for replica_id, count in (calls or {}).items()
        )
        return leaked

    # -- replicas: ports.ReplicaListener

    def replica_ready(self, replica: Replica) -> None:
        """It takes requests from now on."""
        self._replicas[replica.id] = replica
        self._lost.discard(replica.id)
        self._offer(replica)
        if self._merger is not None:
            self._merger.replica_ready()

    def offer_anew(self) -> None:
        """Tell the dispatcher what each replica takes, if a call may have more or fewer rows than before."""
        rows = 0 if self._merger is None else self._dispatcher.rows_per_call(self._merger.rows_per_call)
        if rows != self.rows_per_call:
            self.rows_per_call = rows
            for replica in self.ready_replicas():
                self._offer(replica)

    def replica_draining(self, replica_id: str) -> None:
        """It gets nothing new from now on."""
        self._report(ReplicaDraining(replica_id))

    def replica_lost(self, replica_id: str) -> None:
        """It is gone, or not ready; it is forgotten as soon as nothing runs on it."""
        self._report(ReplicaLost(replica_id))
        self._lost.add(replica_id)
        self._forget_if_lost(replica_id)

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        """One that is ready was asked whether it is well, and answered, or did not."""
        self._report(Probed(replica_id, ok))

    def replica_expected(self, at: float | None) -> None:
        """The next one will be ready at this time [s, monotonic]; None if nobody knows."""
        self._report(ReplicaExpected(None if self.gives_away else at))

    @property
    def urls(self) -> list[str]:
        """Base URL of each replica that is there, draining ones too."""
        return [replica.url for each, replica in self._replicas.items() if each not in self._lost]

    # -- waiting

    def _offer(self, replica: Replica) -> None:
        if rows := self.rows_per_call:
            calls = replica.learns_from or replica.slots
            self._report(ReplicaReady(replica.id, calls * rows, calls_max=calls))
        else:
            self._report(ReplicaReady(replica.id, replica.slots, learns_from=replica.learns_from))

    def _new_waiter(self, request: Request, owner: "asyncio.Task[object] | None", item: Any) -> Waiter:
        waiter = Waiter(request, owner, item=item)
        self._waiters[request.id] = waiter
        return waiter

    async def _ending_of(self, waiter: Waiter) -> Grant | Dropped:
        try:
            while waiter.ending is None:
                if waiter.woken is None:
                    waiter.woken = asyncio.get_running_loop().create_future()
                await waiter.woken
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise
        return waiter.ending

    def _abandon(self, waiter: Waiter) -> None:
        """The wait was cancelled: undo what the dispatcher has, or will have, decided."""
        if waiter.is_elsewhere and self.substitute is not None:
            waiter.is_elsewhere = False
            self.substitute._abandon(waiter)
        elif isinstance(waiter.ending, Grant):
            self.release(waiter.ending, Outcome.CANCELLED)
        elif waiter.ending is None:
            del self._waiters[waiter.request.id]
            self._report(Cancelled(waiter.request.id))
            now = self._clock.now()
            for listener in self._listeners:
                listener.ended(waiter.request, Outcome.CANCELLED, now)
