"""One request's way through queue and slots to the answer of a replica, and the giving back of its slot.

    wait_for_slot ─▶ call ──┬──▶ the answer has begun: a `Call`
          ▲                 │
          └── not executed ─┘

It is tried again only when it provably executed nothing: the connection was refused, or one that had idled
was found closed before any byte came back; and only while the body can be sent again. A replica that refused
is not tried again while there is another.

Whoever makes one uses it as a context: at its end the slot is given back, if it was not before, and the
request is told as ended. Nothing is awaited for that.
"""

import asyncio
from dataclasses import replace
from functools import partial
from math import inf
from types import TracebackType
from typing import Self

from autoscaler.dispatch.events import CallEnd
from autoscaler.dispatch.priority_class import PriorityClass
from autoscaler.domain import Outcome, Request
from autoscaler.proxy.affinity_key import affinity_key
from autoscaler.proxy.answers import Refusal, Refused, dropped
from autoscaler.proxy.attempt import Attempt, Stopped
from autoscaler.proxy.backpressure import BUSY, FAILED, retry_after
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.door import Door, Route
from autoscaler.proxy.grant import Dropped, Grant
from autoscaler.proxy.onward import Onward
from autoscaler.proxy.part_answer import PartAnswer
from autoscaler.proxy.shared_call import Unmerged
from autoscaler.proxy.tenants.tokens import TokenCount, estimate
from autoscaler.proxy.timing import server_timing
from autoscaler.proxy.urgency import class_of

_LOOKED_THROUGH = 64 * 1024
"""A body up to this is looked through when its server failed [bytes]."""


class Execution:
    """Serves one request with the slots of one pool, or of the one that stands in for it."""

    __slots__ = (
        "_copy",
        "_door",
        "_end",
        "_end_of_failure",
        "_onward",
        "_route",
        "_tokens",
        "arrived_at",
        "grant",
        "may_be_cut",
        "outcome",
        "request",
    )

    def __init__(
        self, door: Door, route: Route, onward: Onward, timeout: float | None = None, tenant: str = ""
    ) -> None:
        self._door = door
        self._route = route
        self._onward = onward
        self.arrived_at = door.clock.now()
        """[s, monotonic]"""
        self.grant: Grant | None = None
        """The slot it has, or had last."""
        self._copy: Grant | None = None
        """The slot whose answer it gets, if that is a second one."""
        self._tokens: TokenCount | None = None
        self._end = CallEnd.SERVED
        self._end_of_failure: CallEnd | None = None
        self.outcome = Outcome.FAILED
        """How it ends, unless the answer comes in full before."""
        self.may_be_cut = False
        """Whether a cancellation means that the program ends, not that the client left."""
        own = self._class()
        wait = own.wait_timeout or route.options.wait_timeout
        self.request = Request(
            id=str(next(door.serials)),
            arrived_at=self.arrived_at,
            deadline=self.arrived_at + (wait if timeout is None else min(timeout, wait)),
            given_up_at=inf if timeout is None else self.arrived_at + timeout,
            body_bytes=onward.body.spooled,
            priority_class=own.name,
            tenant=tenant,
            affinity_key=self._affinity_key(),
            hedgeable=route.options.hedge and onward.may_run_twice,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, asyncio.CancelledError):
            if self.may_be_cut:
                self._end_of_failure = CallEnd.INCONCLUSIVE  # the replica did nothing wrong
            else:
                self.outcome = Outcome.CANCELLED
        self._release(self.outcome)
        self._tell_tokens()

    async def wait_for_slot(self) -> None:
        """Wait; raises `Refused` if the queue lets go of the request."""
        batching = self._route.batching
        wish = None if batching is None else await batching.wish(self._onward)
        if wish is None:
            self._take(await self._route.drive.acquire(self.request))
        else:
            item, merge = wish
            self.request = replace(self.request, merge=merge, hedgeable=False)
            self._take(await self._route.drive.acquire(self.request, item))

    async def call(self) -> Call | PartAnswer:
        """Call the replica of the slot, and others if it provably executed nothing; `Refused` if in vain."""
        tries = 0
        while True:
            slot = self.slot
            try:
                if slot.shared is not None:
                    return PartAnswer(await slot.shared.part(self.request.id))
                attempt = Attempt(self._route, self._onward, slot, fresh_connection=tries > 0)
                call = await attempt.make()
            except Stopped:
                self._take(await self._route.drive.retry(slot))
            except Unmerged:
                self._take(await self._route.drive.retry(slot, alone=True))
            except CallBroke as broken:
                tries += 1
                await self._try_elsewhere(broken, tries)
            else:
                self._begin(call, attempt)
                return call

    def _is_sound(self) -> bool:
        """Whether a failure is the server's, and not that of a client who sent what nobody can read."""
        onward, body = self._onward, self._onward.body
        if not body.complete or body.consumed or body.spooled > _LOOKED_THROUGH:
            return True
        from autoscaler.proxy.batch.item import is_sound  # noqa: PLC0415 (NumPy, which a small sidecar does without)

        return is_sound(onward.method, onward.target, onward.headers.items(), body.held())

    def _begin(self, call: Call, attempt: Attempt) -> None:
        """Note whose answer it is, and what it says of the server."""
        self._copy = attempt.copy
        if call.status in BUSY:
            self._route.drive.busy(attempt.winner, retry_after(call.headers))
            self._end = CallEnd.INCONCLUSIVE
        elif call.status in FAILED:
            self._end = CallEnd.SERVER_FAILED if self._is_sound() else CallEnd.INCONCLUSIVE
        self._onward.headers.clear()  # it is not sent again; a long answer need not hold them
        if not call.switched:
            call.when_received(partial(self._release, Outcome.COMPLETED))

    def _release(self, outcome: Outcome) -> None:
        end = self._end if outcome is Outcome.COMPLETED else self._end_of_failure
        for slot in (self._copy, self.grant):
            if slot is not None:
                self._route.drive.release(slot, outcome, end)

    def read_by(self, tokens: TokenCount | None) -> TokenCount | None:
        """Return who reads the answer along: `tokens`, of its tenant; of a language model always somebody."""
        if not self._route.options.reads_tokens:
            return tokens
        asked = self._onward.body.declared or self.request.body_bytes
        self._tokens = tokens or TokenCount(estimate(asked), self._door.clock.now)
        return self._tokens

    def _tell_tokens(self) -> None:
        slot = self._copy or self.grant
        if self._tokens is not None and slot is not None and (use := self._tokens.use(slot.started_at)):
            self._route.drive.answered(slot, use)

    async def _try_elsewhere(self, broken: CallBroke, tries: int) -> None:
        body = self._onward.body
        if body.failure is not None:
            self.outcome = Outcome.REJECTED
            raise Refused(replace(body.failure, executed="maybe")) from broken
        if tries > self._door.options.retries_max or not broken.can_be_repeated or body.consumed:
            raise Refused(self.broke(broken)) from broken
        self._take(await self._route.drive.retry(self.slot, refused=broken.how == "connect"))

    def broke(self, broken: CallBroke) -> Refusal:
        """Note that the call ended without a whole answer; return what to tell the client."""
        if broken.how == "local":
            self.outcome, self._end_of_failure = Outcome.FAILED, CallEnd.INCONCLUSIVE
            return Refusal(503, "no_descriptors", str(broken), broken.executed, retry_after=1.0)
        self._end_of_failure = CallEnd.REFUSED if broken.how == "connect" else CallEnd.BROKE
        if broken.how == "late":
            self.outcome = Outcome.EXPIRED
            return Refusal(504, "upstream_timeout", str(broken), broken.executed)
        self.outcome = Outcome.FAILED
        return Refusal(502, f"upstream_{broken.how}", str(broken), broken.executed, proxy_reason=broken.how)

    def now_executed(self, refusal: Refusal) -> Refusal:
        """Return `refusal`, saying that the request may have executed, if it may."""
        return refusal if self.grant is None else replace(refusal, executed="maybe")

    @property
    def slot(self) -> Grant:
        """The slot it has."""
        if self.grant is None:
            raise RuntimeError("no slot was granted yet")
        return self.grant

    @property
    def pool(self) -> str:
        """Whose slots it uses."""
        return self._route.drive.name

    def times(self) -> tuple[float, float]:
        """Return how long it waited, and how long it has had its slot [s]."""
        now = self._door.clock.now()
        started = now if self.grant is None else self.grant.started_at
        return started - self.arrived_at, now - started

    def timing(self) -> str:
        """Tell where the time went, as `Server-Timing` does [ms]."""
        return server_timing(*self.times(), self.grant)

    def _class(self) -> PriorityClass:
        route, onward = self._route, self._onward
        options = route.options
        said, body = (onward.headers, onward.body.held()) if options.urgency_from_clients else ({}, b"")
        return class_of(said, onward.target, body, route.drive.classes, options.priority_class)

    def _affinity_key(self) -> str:
        options, onward = self._route.options.affinity, self._onward
        if not options.any:
            return ""
        return affinity_key(options, onward.headers.get, onward.target, onward.body.held)

    def _take(self, ending: Grant | Dropped) -> None:
        if isinstance(ending, Grant):
            self.grant = ending
            if self._route.substitute is not None and ending.pool == self._route.substitute.drive.name:
                self._route = self._route.substitute
            return
        self.grant = None
        waited = self._door.clock.now() - self.arrived_at
        raise Refused(dropped(ending.reason, ending.expected_wait, waited))
