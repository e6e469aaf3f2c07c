"""One client, its call, and how far that has come: what others see of it, and what is told at its end."""

from typing import Any

import grpc

from autoscaler.proxy.access_log import AccessLine
from autoscaler.proxy.answers import Refusal
from autoscaler.proxy.grpc.answers import code_of, http_status_of
from autoscaler.proxy.grpc.front import Front
from autoscaler.proxy.grpc.inference import Inference, time_left
from autoscaler.proxy.grpc.metadata import Metadata, first, passed_on
from autoscaler.proxy.grpc.methods import Kind, Method
from autoscaler.proxy.grpc.relay import Status
from autoscaler.proxy.grpc.routes import POOL_KEY
from autoscaler.proxy.tenants.gate import Entry
from autoscaler.proxy.timing import server_timing
from autoscaler.telemetry.live_request import LiveRequest

REQUEST_ID = "x-request-id"

_METHOD = "POST"
"""What HTTP/2 says of every call; its path tells which it is."""

_OURS = frozenset((POOL_KEY,))
_REPLACED = _OURS | {REQUEST_ID}

Context = Any  # the library hands out a class of its own, which it does not name


class Conversation:
    """One call and its ending. A `relay.Client` where it is a stream."""

    def __init__(self, front: Front, method: Method, context: Context) -> None:
        self.front = front
        self.method = method
        self.context = context
        self.metadata: Metadata = context.invocation_metadata()
        given = first(self.metadata, REQUEST_ID)
        self.id = front.ids.of(given)
        self._brought_id = self.id == given
        self.arrived_at = front.clock.now()
        self.pool = ""
        """Name of the pool; empty while it is not known."""
        self.entry = Entry()
        """Whose call it is."""
        self.inference: Inference | None = None
        """Its way through the queue, if it is one that takes a slot."""
        self._answers_begun = False
        self._sent = 0
        self._status, self._code, self._grpc_status = 499, "client_left", grpc.StatusCode.CANCELLED

    # -- towards the client

    async def read(self) -> Any:
        """Return its next message, or the library's EOF."""
        return await self.context.read()

    async def write(self, message: bytes) -> None:
        """Give it a message."""
        self._answers_begun = True
        self._sent += len(message)
        await self.context.write(message)

    async def write_first(self, metadata: Metadata) -> None:
        """Give it the metadata that stand before the first message."""
        await self.context.send_initial_metadata(metadata)

    def story(self, said: Metadata = ()) -> Metadata:
        """Tell whose answer this is, unless the server `said` it, and where its time went."""
        waited, served = self._times()
        grant = None if self.inference is None else self.inference.grant
        timing = ("server-timing", server_timing(waited, served or 0.0, grant))
        return (timing,) if first(said, REQUEST_ID) is not None else ((REQUEST_ID, self.id), timing)

    # -- towards a replica

    def onward(self, without: frozenset[str]) -> Metadata:
        """Return what a replica gets to see of its metadata, less the names in `without`; with its id."""
        ours = _OURS if self._brought_id else _REPLACED
        passed = passed_on(self.metadata, ours | without if without else ours)
        return passed if self._brought_id else (*passed, (REQUEST_ID, self.id))

    def text(self, name: str) -> str | None:
        """Return the first text value of a name of its metadata, in whatever case."""
        return first(self.metadata, name.lower())

    # -- what others see of it

    def note_end(self, status: Status) -> None:
        """It ends with what a server said."""
        self._sent += len(status.message or b"")
        self._note_code(status.code)
        if status.broke:
            self._status, self._code = 502, "upstream_reset"

    def note_refusal(self, refusal: Refusal) -> None:
        """It ends with a refusal of ours."""
        self._status, self._code, self._grpc_status = refusal.status, refusal.code, code_of(refusal)

    def note_gone(self) -> None:
        """It is cancelled by the library: its deadline is over, or its client left."""
        if time_left(self.context) <= 0:
            self._note_code(grpc.StatusCode.DEADLINE_EXCEEDED)

    def live(self, now: float) -> LiveRequest:
        """Say where it stands."""
        return LiveRequest(
            id=self.id,
            method=_METHOD,
            path=self.method.path,
            state=self._state,
            age=now - self.arrived_at,
            pool=self.pool,
            priority_class=self._priority_class,
            tenant=self.entry.tenant,
            replica=self._replica,
        )

    def line(self) -> AccessLine:
        """Say how it ended."""
        now = self.front.clock.now()
        waited, served = self._times()
        return AccessLine(
            time=self.front.clock.wall_time(),
            id=self.id,
            method=_METHOD,
            path=self.method.path,
            status=self._status,
            code=self._code,
            pool=self.pool,
            priority_class=self._priority_class,
            tenant=self.entry.tenant,
            replica=self._replica,
            queue_seconds=round(waited, 6),
            service_seconds=round(served or 0.0, 6),
            total_seconds=round(now - self.arrived_at, 6),
            sent_bytes=self._sent,
            grpc_status=self._grpc_status.name,
        )

    def _note_code(self, code: grpc.StatusCode) -> None:
        self._status, self._code, self._grpc_status = http_status_of(code), code.name.lower(), code

    def _times(self) -> tuple[float, float | None]:
        return (0.0, None) if self.inference is None else self.inference.times()

    @property
    def _priority_class(self) -> str:
        return "" if self.inference is None else self.inference.request.priority_class

    @property
    def _replica(self) -> str:
        grant = None if self.inference is None else self.inference.grant
        return "" if grant is None else grant.replica.id

    @property
    def _state(self) -> str:
        if self._answers_begun:
            return "answering"
        if self.inference is not None:
            return "waiting" if self.inference.grant is None else "calling"
        return "reading" if self.method.kind is Kind.STREAM else "calling"
