"""One attempt to get an answer with one slot; at most two calls, if a copy is sent.

Most attempts are one call. Two things can happen before its answer begins, where the pool is set up for them:
the call is stopped because a more urgent request needs the slot, or the dispatcher gives a second slot for a
copy of a request that takes long. Then the answer that begins first counts, and the other call is ended.
"""

import asyncio

from autoscaler.dispatch.events import CallEnd
from autoscaler.domain import Outcome
from autoscaler.proxy.call import Call
from autoscaler.proxy.door import Route
from autoscaler.proxy.grant import Grant
from autoscaler.proxy.onward import Onward


class Stopped(Exception):
    """The call was ended for a more urgent request; this one shall wait again."""


class Attempt:
    """Calls the replica of `slot`."""

    def __init__(self, route: Route, onward: Onward, slot: Grant, *, fresh_connection: bool) -> None:
        self._route = route
        self._onward = onward
        self._slot = slot
        self._fresh_connection = fresh_connection
        self._is_stopped = False
        self._task: asyncio.Task[object] | None = None
        self.copy: Grant | None = None
        """The second slot, if its answer began first. Whoever made the attempt owes its release."""

    @property
    def winner(self) -> Grant:
        """The slot whose answer it is."""
        return self.copy or self._slot

    async def make(self) -> Call:
        """Return the call whose answer has begun; raises `CallBroke` or `Stopped`."""
        if self._slot.request.hedgeable:
            return await self._make_with_copy()
        if self._route.drive.preempts and self._onward.body.complete:
            return await self._make_stoppably()
        return await self._call(self._slot)

    async def _call(self, slot: Grant) -> Call:
        onward = self._onward
        return await self._route.upstream.call(
            onward.method,
            slot.replica,
            onward.target,
            onward.headers,
            onward.body,
            fresh_connection=self._fresh_connection,
            upgrade=onward.upgrade,
        )

    # -- stopped for a more urgent one

    async def _make_stoppably(self) -> Call:
        drive, slot = self._route.drive, self._slot
        self._task = asyncio.current_task()
        drive.let_stop(slot, self._stop)
        try:
            return await self._call(slot)
        except asyncio.CancelledError:
            if not self._is_stopped or self._task is None or self._task.uncancel() > 0:
                raise
            raise Stopped from None
        finally:
            drive.first_byte(slot)

    def _stop(self) -> None:
        if self._task is not None:
            self._is_stopped = True
            self._task.cancel()

    # -- with a copy

    async def _make_with_copy(self) -> Call:
        drive, slot = self._route.drive, self._slot
        came: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        drive.let_hedge(slot, came.set_result)
        first = asyncio.create_task(self._call(slot))
        calls = {first: slot}
        winner: asyncio.Task[Call] | None = None
        try:
            await asyncio.wait((first, came), return_when=asyncio.FIRST_COMPLETED)
            drive.let_hedge(slot, None)
            if came.done():
                calls[asyncio.create_task(self._call(came.result()))] = came.result()
            winner = await _first_to_begin(tuple(calls))
            return winner.result()
        finally:
            drive.let_hedge(slot, None)
            for call in calls:
                if call is not winner:
                    call.cancel()
                    call.add_done_callback(_end_unwanted)
            if came.done():
                self._settle(came.result(), wins=winner is not None and calls[winner] is not slot)

    def _settle(self, copy: Grant, *, wins: bool) -> None:
        """Free the slot whose call is not wanted."""
        if wins:
            self.copy = copy
            self._route.drive.give_up(self._slot)
        else:
            self._route.drive.release(copy, Outcome.CANCELLED, CallEnd.INCONCLUSIVE)


async def _first_to_begin(calls: "tuple[asyncio.Task[Call], ...]") -> "asyncio.Task[Call]":
    """Return the call whose answer begins first; raises as the first of `calls` did if none does."""
    pending = set(calls)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for call in calls:
            if call in done and call.exception() is None:
                return call
    await calls[0]
    return calls[0]


def _end_unwanted(call: "asyncio.Task[Call]") -> None:
    if not call.cancelled() and call.exception() is None:
        call.result().end()
