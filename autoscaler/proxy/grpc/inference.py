"""One inference, or one stream of them: its way through queue and slot to the status of a replica.

It is tried on another replica only if the first provably was not reached: the connection is made before the
call is given to it. A unary call may be stopped for a more urgent request where the queue is set up so, as
long as its answer has not come; then it waits again.

Whoever makes one uses it as a context: at its end the slot is given back, if it was not before, and the
request is told as ended. Nothing is awaited for that.
"""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from types import TracebackType
from typing import Any, Self

import grpc

from autoscaler.dispatch.events import CallEnd
from autoscaler.domain import Outcome, Request
from autoscaler.proxy.affinity_key import affinity_key
from autoscaler.proxy.answers import Refusal, Refused, dropped
from autoscaler.proxy.batch.grpc_item import grpc_item
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.grant import Dropped, Grant
from autoscaler.proxy.grpc.channels import Line
from autoscaler.proxy.grpc.front import Front
from autoscaler.proxy.grpc.metadata import Metadata, first
from autoscaler.proxy.grpc.methods import Kind, Method
from autoscaler.proxy.grpc.model_name import text_field
from autoscaler.proxy.grpc.relay import Client, Status, relay_answer, relay_stream
from autoscaler.proxy.grpc.routes import GrpcRoute
from autoscaler.proxy.shared_call import SharedCall, Unmerged
from autoscaler.proxy.urgency import class_of

_MODEL_FIELDS = (1, 2)
"""Where an inference names its model, and the version."""

_BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
"""By these a server says that it has too much to do."""

_FAILED = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS)

_URGENCY_FIELDS = {"priority": "Priority", "prefer": "Prefer"}
"""What says how urgent a call is, by its name in the metadata, as the HTTP side names it."""

_RETRY_AFTER_MAX = 3600
"""A server is not left alone for longer, whatever it says [s]."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asked for."""

    method: Method
    message: bytes
    """Its first, or only, message."""
    metadata: Metadata
    """What a replica gets to see of its metadata."""
    tenant: str


class Inference:
    """Serves one call of a client with the slots of one pool.

    `context` is the library's, of the client's call; `client` reads and writes the messages of a stream.
    """

    def __init__(self, front: Front, route: GrpcRoute, context: Any, client: Client, asked: Asked) -> None:
        self._front = front
        self._route = route
        self._channels = front.channels(route)
        self._context = context
        self._client = client
        self._asked = asked
        self._task = asyncio.current_task()
        self._is_stopped = False
        self._shared_tries = 0
        self._arrived_at = front.clock.now()
        self._outcome = Outcome.FAILED
        self._end: CallEnd | None = None
        self.grant: Grant | None = None
        """The slot it has, or had last."""
        self.may_be_cut = False
        """Whether a cancellation means that the program ends, not that the client left."""
        self.request = self._request()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, asyncio.CancelledError):
            if self.may_be_cut:
                self._end = CallEnd.INCONCLUSIVE  # the replica did nothing wrong
            else:
                self._outcome = Outcome.EXPIRED if time_left(self._context) <= 0 else Outcome.CANCELLED
        if self.grant is not None:
            self._route.drive.release(self.grant, self._outcome, self._end)

    async def run(self) -> Status:
        """Wait for a slot and use it; return what the replica says. Raises `Refused` if in vain."""
        await self._wait_for_slot()
        while True:
            if self._slot.shared is not None:
                if (part := await self._part(self._slot.shared)) is not None:
                    return part
                continue
            line = await self._connected()
            if not (self._route.drive.preempts and self._asked.method.kind is Kind.INFERENCE):
                status = await self._relay(line)
                break
            if (stoppable := await self._relay_stoppably(line)) is not None:
                status = stoppable
                break
            self._take(await self._route.drive.retry(self._slot, refused=False))
        self._judge(status)
        return status

    def times(self) -> tuple[float, float | None]:
        """Return how long it waited, and how long it has had its slot if it has one [s]."""
        now = self._front.clock.now()
        if self.grant is None:
            return now - self._arrived_at, None
        return self.grant.started_at - self._arrived_at, now - self.grant.started_at

    def _request(self) -> Request:
        options, asked = self._route.options, self._asked
        said: dict[str, str] = {}
        if options.urgency_from_clients:
            said = {
                _URGENCY_FIELDS[key]: value
                for key, value in asked.metadata
                if key in _URGENCY_FIELDS and isinstance(value, str)
            }
        own = class_of(said, asked.method.path, b"", self._route.drive.classes, options.priority_class)
        wait, left = own.wait_timeout or options.wait_timeout, time_left(self._context)
        return Request(
            id=self._front.new_serial(),
            arrived_at=self._arrived_at,
            deadline=self._arrived_at + min(wait, left),
            body_bytes=len(asked.message),
            priority_class=own.name,
            tenant=asked.tenant,
            affinity_key=affinity_key(options.affinity, self._text, asked.method.path),
            given_up_at=self._arrived_at + left,
        )

    async def _wait_for_slot(self) -> None:
        asked, batching = self._asked, self._route.batching
        wish = None
        if batching is not None and asked.method.kind is Kind.INFERENCE:
            names = (text_field(asked.message, number) for number in _MODEL_FIELDS)
            wish = batching.wish_of(partial(grpc_item, asked.message, asked.metadata), *names)
        if wish is None:
            self._take(await self._route.drive.acquire(self.request))
        else:
            item, merge = wish
            self.request = replace(self.request, merge=merge)
            self._take(await self._route.drive.acquire(self.request, item))

    async def _part(self, shared: SharedCall) -> Status | None:
        """Wait for its part of the answer of a call that others share; None if it must try again."""
        drive, slot = self._route.drive, self._slot
        try:
            part = await shared.part(self.request.id)
        except Unmerged:
            self._take(await drive.retry(slot, alone=True))
            return None
        except CallBroke as broken:
            self._shared_tries += 1
            if not broken.can_be_repeated or self._shared_tries > self._front.options.retries_max:
                self._end = CallEnd.REFUSED if broken.how == "connect" else CallEnd.BROKE
                self._outcome = Outcome.EXPIRED if broken.how == "late" else Outcome.FAILED
                raise Refused(_broke(broken)) from broken
            self._take(await drive.retry(slot, refused=broken.how == "connect"))
            return None
        self._outcome = Outcome.COMPLETED
        return Status(grpc.StatusCode.OK, "", (), message=part.body)

    def _text(self, name: str) -> str | None:
        return first(self._asked.metadata, name.lower())

    async def _connected(self) -> Line:
        """Return the line to the slot's replica, or to another if that one refuses."""
        tries = 0
        while True:
            try:
                return await self._channels.ready(self._slot.replica)
            except CallBroke as broken:
                tries += 1
                if tries > self._front.options.retries_max or self._slot.replica.grpc_target is None:
                    self._end = CallEnd.REFUSED
                    raise Refused(_broke(broken)) from broken
                self._take(await self._route.drive.retry(self._slot, refused=True))

    async def _relay(self, line: Line) -> Status:
        asked, options, channels = self._asked, self._route.options, self._channels
        path, message, metadata = asked.method.path, asked.message, asked.metadata
        is_stream = asked.method.kind is Kind.STREAM
        if is_stream:
            call = line.open_stream(path, metadata, time_limit(self._context))
        else:
            call = line.ask(path, message, metadata, time_limit(self._context, options.first_byte_timeout))
        channels.began(call, self._slot.replica.id)
        try:
            if is_stream:
                return await relay_stream(call, line, self._client, message, options.idle_timeout)
            return await relay_answer(call, line)
        finally:
            channels.ended(call)

    async def _relay_stoppably(self, line: Line) -> Status | None:
        """Relay; None if a more urgent request needs the slot."""
        drive, slot = self._route.drive, self._slot
        drive.let_stop(slot, self._stop)
        try:
            return await self._relay(line)
        except asyncio.CancelledError:
            if not self._is_stopped or self._task is None or self._task.uncancel() > 0:
                raise
            self._is_stopped = False
            return None
        finally:
            drive.first_byte(slot)

    def _stop(self) -> None:
        if self._task is not None:
            self._is_stopped = True
            self._task.cancel()

    def _judge(self, status: Status) -> None:
        """Say how the request ended, and what that tells of the replica."""
        if status.broke:
            self._end = CallEnd.BROKE
            return
        late = status.code is grpc.StatusCode.DEADLINE_EXCEEDED
        self._outcome = Outcome.EXPIRED if late else Outcome.COMPLETED
        if status.code in _FAILED:
            self._end = CallEnd.SERVER_FAILED
        elif status.code in _BUSY:
            self._end = CallEnd.INCONCLUSIVE
            self._route.drive.busy(self._slot, _retry_after(status.trailing))

    def _take(self, ending: Grant | Dropped) -> None:
        if isinstance(ending, Grant):
            self.grant = ending
            if ending.pool != self._route.drive.name:
                self._route = self._front.routes.of_pool(ending.pool)
                self._channels = self._front.channels(self._route)
            return
        self.grant = None
        waited = self._front.clock.now() - self._arrived_at
        raise Refused(dropped(ending.reason, ending.expected_wait, waited))

    @property
    def _slot(self) -> Grant:
        if self.grant is None:
            raise RuntimeError("no slot was granted yet")
        return self.grant


def time_left(context: Any) -> float:
    """Return what is left until the deadline of a call [s]; infinity if it has none."""
    left = context.time_remaining()
    return inf if left is None else float(left)


def time_limit(context: Any, allowed: float | None = None) -> float | None:
    """Return how long a server may take [s]: until the deadline, and no longer than is `allowed`."""
    limit = min(max(0.0, time_left(context)), inf if allowed is None else allowed)
    return None if limit == inf else limit


def _retry_after(trailing: Metadata) -> float:
    """Return for how long the server asks to be left alone [s]; 0 if it does not say it."""
    said = first(trailing, "retry-after") or ""
    return min(int(said), _RETRY_AFTER_MAX) if said.isascii() and said.isdigit() else 0.0


def _broke(broken: CallBroke) -> Refusal:
    if broken.how == "late":
        return Refusal(504, "upstream_timeout", str(broken), broken.executed)
    return Refusal(502, f"upstream_{broken.how}", str(broken), broken.executed, proxy_reason=broken.how)
