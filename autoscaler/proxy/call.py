"""One call to a replica, from the moment its answer begins; or how it broke."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict

from autoscaler.proxy.answers import Executed

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


@dataclass(slots=True, eq=False)
class Wire:
    """What one call gives to its connection, and what it learns of it."""

    headers: CIMultiDict[str]
    transport: asyncio.Transport | None = None
    reused: bool = False
    written_at: float = 0.0

    def abort(self) -> None:
        """Close it without waiting for what is still to be written."""
        if self.transport is not None:
            self.transport.abort()


class Call:
    """A call whose answer has begun. Ends by `end`."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        headers: CIMultiDict[str],
        wire: Wire,
        over: Callable[[], None],
    ) -> None:
        self._response = response
        self._wire = wire
        self._over = over
        """Told when the server is done with it, at least once."""
        self.status = response.status
        reason = response.reason or ""
        self.reason = reason if reason.isprintable() else None
        """Its reason phrase; None for the standard one where the server's cannot be written."""
        self.headers = headers
        """What of its head is passed on."""
        self.switched = response.status == HTTPStatus.SWITCHING_PROTOCOLS
        """Whether the connection speaks another protocol from here on, as was asked."""
        if not self.switched:
            response.content.on_eof(over)

    @property
    def whole(self) -> bool:
        """Whether the answer has been received in full and read."""
        content = self._response.content
        return content.at_eof() and content.exception() is None

    @property
    def begun(self) -> bool:
        """Whether a part of the body is here already."""
        return self._response.content.total_bytes > 0 or self._response.content.at_eof()

    def when_received(self, tell: Callable[[], None]) -> None:
        """Call `tell` as soon as the last byte is here, read or not; now if it is already."""
        self._response.content.on_eof(tell)

    async def next_piece(self) -> bytes:
        """Return what has arrived, waiting if nothing has; empty at the end. Raises `CallBroke`."""
        try:
            return await self._response.content.readany()
        except TimeoutError as late:
            raise CallBroke("late", "maybe", "The model server fell silent in mid-answer.") from late
        except (aiohttp.ClientError, OSError) as broken:
            raise CallBroke("truncated", "maybe", "The model server broke off its answer.") from broken

    @property
    def protocol(self) -> ResponseHandler:
        """The connection that the answer comes over. Raises `CallBroke` if it is lost."""
        connection = self._response.connection
        if connection is None or connection.protocol is None or connection.protocol.transport is None:
            raise CallBroke("truncated", "maybe", "The model server broke off its answer.")
        return connection.protocol

    def end(self) -> None:
        """Close the connection at once; unless all has come over it, then it may be in use again.

        What a client said last over a switched connection gets a moment to leave.
        """
        received = self._response.content.is_eof()
        self._over()
        self._response.close()
        if self.switched:
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._wire.abort)
        elif not received:
            self._wire.abort()
