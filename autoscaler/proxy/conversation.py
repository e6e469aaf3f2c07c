"""One client, its request, and how far the answer has come: what every way of handling it has in common."""

from aiohttp import HttpVersion11, web
from multidict import CIMultiDict

from autoscaler.proxy.access_log import CLIENT_LEFT, AccessLine
from autoscaler.proxy.answers import Refusal, answer
from autoscaler.proxy.connection import Connection
from autoscaler.proxy.door import Door
from autoscaler.proxy.execution import Execution
from autoscaler.proxy.head_check import expects_continue
from autoscaler.proxy.onward import REQUEST_ID
from autoscaler.proxy.relay import Relay
from autoscaler.proxy.tenants.gate import Entry
from autoscaler.proxy.tunnel import Tunnel
from autoscaler.telemetry.live_request import LiveRequest

_PATH_SHOWN = 200
"""So much of a path is shown [characters]."""

_OUT_OF_STEP = (400, 408, 413)
"""After these nobody can say where the next request on the connection would begin."""


class Conversation:
    """One request and its answer."""

    __slots__ = (
        "_code",
        "arrived_at",
        "door",
        "entry",
        "execution",
        "expects_continue",
        "has_joined",
        "id",
        "notes",
        "path",
        "pool",
        "request",
        "streaming",
    )

    def __init__(self, door: Door, request: web.BaseRequest) -> None:
        self.door = door
        self.request = request
        self.path = request.raw_path.partition("?")[0]
        self.id = door.ids.of(request.headers.get(REQUEST_ID))
        self.arrived_at = door.clock.now()
        self.expects_continue = expects_continue(request)
        self.pool = ""
        """Name of the pool; empty while it is not known."""
        self.entry = Entry()
        """Whose request it is."""
        self.execution: Execution | None = None
        self.streaming: Relay | Tunnel | None = None
        """The answer of a server, on its way."""
        self.has_joined = False
        """Whether it waits for an execution that is not its own."""
        self.notes: CIMultiDict[str] = CIMultiDict()
        """Fields to add to the answer."""
        self._code = "ok"

    # -- answers of our own

    def refuse(self, refusal: Refusal) -> web.Response:
        """Return the answer that says no."""
        self._code = refusal.code
        response = answer(refusal, self.path)
        response.headers.extend(self.story())
        if self.is_last or refusal.status in _OUT_OF_STEP:
            response.force_close()
        return response

    def break_off(self, refusal: Refusal) -> web.StreamResponse:
        """End the request before it is answered in full, in the way that its answer still allows."""
        if self.execution is not None:
            refusal = self.execution.now_executed(refusal)
        if self.streaming is None or not self.streaming.begun:
            return self.refuse(refusal)
        self._code = refusal.code
        self.streaming.break_off(refusal)
        return self.streaming.response

    async def say_continue(self) -> None:
        """Ask for the body."""
        await self.say_between(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def say_between(self, head: bytes) -> None:
        """Send an informational answer, before the final one; not to who speaks HTTP/1.0."""
        if self.request.version >= HttpVersion11:
            writer = self.request.writer
            await writer.write(head)
            writer.output_size = 0  # aiohttp takes it for the beginning of the answer

    def story(self) -> CIMultiDict[str]:
        """Tell whose answer this is and where its time went."""
        timing = "queue;dur=0.0" if self.execution is None else self.execution.timing()
        story = CIMultiDict({REQUEST_ID: self.id, "Server-Timing": timing})
        story.extend(self.notes)
        return story

    @property
    def is_last(self) -> bool:
        """Whether its connection closes after the answer, which is then to say so."""
        connection = self.request.protocol
        return self.door.draining or (isinstance(connection, Connection) and connection.ends)

    # -- what others see of it

    def live(self, now: float) -> LiveRequest:
        """Say where it stands."""
        execution = self.execution
        return LiveRequest(
            id=self.id,
            method=self.request.method,
            path=self.path[:_PATH_SHOWN],
            state=self._state,
            age=now - self.arrived_at,
            pool=self.pool,
            priority_class="" if execution is None else execution.request.priority_class,
            tenant=self.entry.tenant,
            replica=self._replica,
        )

    def line(self, status: int) -> AccessLine:
        """Say how it ended."""
        now, execution = self.door.clock.now(), self.execution
        waited, served = (0.0, 0.0) if execution is None else execution.times()
        return AccessLine(
            time=self.door.clock.wall_time(),
            id=self.id,
            method=self.request.method,
            path=self.path[:_PATH_SHOWN],
            status=status,
            code="client_left" if status == CLIENT_LEFT else self._code,
            pool=self.pool,
            priority_class="" if execution is None else execution.request.priority_class,
            tenant=self.entry.tenant,
            replica=self._replica,
            queue_seconds=round(waited, 6),
            service_seconds=round(served, 6),
            total_seconds=round(now - self.arrived_at, 6),
            sent_bytes=self.request.writer.output_size,
        )

    @property
    def _replica(self) -> str:
        grant = None if self.execution is None else self.execution.grant
        return "" if grant is None else grant.replica.id

    @property
    def _state(self) -> str:
        if self.streaming is not None:
            return "websocket" if isinstance(self.streaming, Tunnel) else "answering"
        if self.execution is None:
            return "joined" if self.has_joined else "reading"
        return "waiting" if self.execution.grant is None else "calling"
