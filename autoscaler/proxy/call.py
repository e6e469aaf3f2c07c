"""One call to a replica, from the moment its answer begins; or how it broke.

A connection feeds the call while the answer comes in; whoever made the call reads from it. The two may be at
different places: the last byte can be here, and the connection at work for another call, while this one is
still being read. What is held for a reader that is slow is bounded by the connection, which stops reading.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from multidict import CIMultiDict

from autoscaler.proxy.answers import Executed

Fields = list[tuple[bytes, bytes]]
"""Header fields as they came."""

_LAST_WORDS = 2.0
"""So long a close may take to leave [s]."""


class CallBroke(Exception):
    """A call ended without a whole answer."""

    def __init__(self, how: str, executed: Executed, text: str) -> None:
        super().__init__(text)
        self.how = how
        """connect, reset, truncated, protocol; late; or local: this machine could not make the call."""
        self.executed = executed

    @property
    def can_be_repeated(self) -> bool:
        """Whether it provably executed nothing, and another replica may be better."""
        return self.executed == "no" and self.how != "local"


class Line(Protocol):
    """What a call asks of the connection that it is on."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """None when the connection is lost."""

    def read_on(self) -> None:
        """The reader has caught up: read again."""

    def close(self) -> None:
        """Close when all is sent that was written."""

    def abort(self) -> None:
        """Close without waiting for what is still to be written."""


class Sink(Protocol):
    """Where an answer goes while it comes in."""

    @property
    def ready(self) -> bool:
        """Whether it takes more now."""

    def take(self, piece: bytes) -> None:
        """Take it; raises ConnectionError if it cannot any more."""


class Call:
    """A call; its `status`, `reason` and `headers` are there once it was returned by `Upstream.call`.

    Parameters
    ----------
    over : callable
        Told when the server is done with it, at least once.
    expects_body : bool
        Whether an answer may have a body; not one to HEAD.
    between : callable or None
        Given the informational answers that come before the final one: status and fields.
    """

    __slots__ = (
        "_failure", "_has_taken", "_line", "_over", "_pieces", "_sink", "_sink_failure", "_tell", "_waiter",
        "begun", "between", "expects_body", "fields", "has_head", "headers", "held", "reason", "received",
        "status", "switched", "trailers",
    )  # fmt: skip

    def __init__(
        self,
        over: Callable[["Call"], None],
        *,
        expects_body: bool = True,
        between: Callable[[int, Fields], None] | None = None,
    ) -> None:
        self._over = over
        self._line: Line | None = None
        self._failure: CallBroke | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._has_taken = False
        self._sink: Sink | None = None
        self._sink_failure: ConnectionError | None = None
        self._tell: list[Callable[[], None]] = []
        self.expects_body = expects_body
        self.between = between
        self.status = 0
        self.reason: str | None = None
        """Its reason phrase; None for the standard one where the server's cannot be written."""
        self.fields: Fields = []
        """Its head as it came."""
        self.headers: CIMultiDict[str] = CIMultiDict()
        """What of its head is passed on."""
        self.trailers: Fields = []
        """What came behind a chunked body."""
        self.switched = False
        """Whether the connection speaks another protocol from here on, as was asked."""
        self.has_head = False
        """Whether the final answer has begun."""
        self.begun = False
        """Whether a part of the body is here already, or all there is."""
        self.received = False
        """Whether the last byte is here, read or not."""
        self.held = 0
        """What is here and not read [bytes]."""

    # -- for the connection that it is on

    def carried_by(self, line: Line | None) -> None:
        """Note the connection that brings the answer; None: it brings no more."""
        self._line = line

    def begin(self, status: int, reason: str | None, fields: Fields) -> None:
        """The head of the final answer is here; `wake` follows."""
        self.status, self.reason, self.fields = status, reason, fields
        self.has_head = True

    def take(self, piece: bytes) -> None:
        """Take in what comes next of the body; `wake` follows."""
        self._pieces.append(piece)
        self.held += len(piece)
        self.begun = True

    def wake(self) -> None:
        """Pass on what is here, or let whoever waits for it look again."""
        if self._sink is not None and not self.received and self._failure is None:
            self.flow()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def complete(self) -> None:
        """The last byte is here: tell those who asked to be told."""
        self.received = self.begun = True
        self._over(self)
        tell, self._tell = self._tell, []
        for each in tell:
            each()
        self.wake()

    def fail(self, failure: CallBroke) -> None:
        """No more will come, and not all has."""
        self._failure = failure
        self._tell.clear()
        self.wake()

    # -- for its reader

    async def head(self) -> None:
        """Wait until the final answer has begun; raises `CallBroke` if none does."""
        while not self.has_head and self._failure is None:
            await self._news()
        if self._failure is not None and not self.received:
            raise self._failure

    @property
    def whole(self) -> bool:
        """Whether the answer has been received in full and read."""
        return self.received and not self._pieces

    def when_received(self, tell: Callable[[], None]) -> None:
        """Call `tell` as soon as the last byte is here, read or not; now if it is already."""
        if self.received:
            tell()
        elif self._failure is None:
            self._tell.append(tell)

    async def next_piece(self) -> bytes:
        """Return what has arrived, waiting if nothing has; empty at the end. Raises `CallBroke`.

        Of an answer that broke, what came before is returned first, if the reader has some of it already:
        else it can still be told by another status.
        """
        while not self._pieces:
            if self.received:
                return b""
            if self._failure is not None:
                raise self._failure
            await self._news()
        if self._failure is not None and not self._has_taken:
            raise self._failure
        return self._taken()

    async def pour(self, sink: Sink) -> bytes:
        """Give `sink` all that comes in the turn in which it comes, if it is ready; return the last of it.

        Whoever owns the sink calls `flow` when it is ready again. Raises `CallBroke`, after what came before
        was given, and ConnectionError if the sink does.
        """
        self._sink = sink
        try:
            self.flow()
            while not self.received and self._failure is None and self._sink_failure is None:
                await self._news()
        finally:
            self._sink = None
        rest = self._taken()
        if self._sink_failure is not None:
            raise self._sink_failure
        if self._failure is not None:
            if rest:
                sink.take(rest)
            raise self._failure
        return rest

    def flow(self) -> None:
        """Pass on what is here to where it is poured, if that is ready."""
        sink = self._sink
        if sink is None or not self._pieces or self.received or not sink.ready:
            return
        try:
            sink.take(self._taken())
        except ConnectionError as error:
            self._sink_failure = error
            self._sink = None
            self.wake()

    def _taken(self) -> bytes:
        """Return all that is here, and let more come."""
        pieces, self._pieces, self.held = self._pieces, [], 0
        self._has_taken = True
        if self._line is not None:
            self._line.read_on()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def protocol(self) -> Line:
        """The connection that the answer comes over. Raises `CallBroke` if it is lost."""
        if self._line is None or self._line.transport is None:
            raise CallBroke("truncated", "maybe", "The model server broke off its answer.")
        return self._line

    def end(self) -> None:
        """Close the connection at once; unless all has come over it, then it may be in use again.

        What a client said last over a switched connection gets a moment to leave.
        """
        self._over(self)
        line, self._line = self._line, None
        if line is None:
            return
        if self.switched:
            line.close()
            asyncio.get_running_loop().call_later(_LAST_WORDS, line.abort)
        elif not self.received:
            line.abort()

    async def _news(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
