"""Streams one answer back to one client.

What has arrived is passed on, as it is, as soon as it is there, no faster than the client takes it; what is
held for one stream is bounded by the read buffer and the write buffer. An answer that is here already goes
out in one piece.

An answer that breaks after its head was sent must look broken: the chunked body gets no last chunk, the
counted one stays short, and where only the end of the connection marks the end (HTTP/1.0), it is reset. A
stream of server-sent events first gets one that says why, unless it stands in mid-event: what a client has
of that one it will discard, and an addition would make it valid and wrong.
"""

import asyncio
import socket
import struct
from typing import Protocol

from aiohttp import HttpVersion11, hdrs, web
from multidict import CIMultiDict

from autoscaler.proxy.answers import Refusal, error_event
from autoscaler.proxy.call import Call
from autoscaler.proxy.connection import Connection
from autoscaler.proxy.headers import TRAILERS_DROPPED, BadHead, end_to_end
from autoscaler.proxy.relayed_response import RelayedResponse
from autoscaler.proxy.tenants.tokens import TokenCount

_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_MAY_REPEAT = ("Server-Timing",)
"""Fields that a server and a proxy may both add."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for 0 s: closing resets the connection."""


class Incoming(Protocol):
    """An answer that comes in: from a server (`Call`), or once more (`Playback`)."""

    @property
    def status(self) -> int:
        """Its status code."""

    @property
    def reason(self) -> str | None:
        """Its reason phrase; None for the standard one."""

    @property
    def headers(self) -> CIMultiDict[str]:
        """What of its head is passed on; the relay may change it."""

    @property
    def begun(self) -> bool:
        """Whether a part of the body is here already."""

    @property
    def whole(self) -> bool:
        """Whether it has been received in full and read."""

    async def next_piece(self) -> bytes:
        """Return what has arrived, waiting if nothing has; empty at the end. Raises `CallBroke`."""


class Relay:
    """The answer of `call`, on its way to the client of `request`.

    Parameters
    ----------
    request : web.BaseRequest
        Of the client.
    call : Incoming
        Its answer has begun.
    story : CIMultiDict of str
        Header fields to add, where the server has not said them.
    linger : float
        So long a broken answer may take to leave our buffers [s].
    tokens : TokenCount or None
        Is shown the answer as it passes.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        call: Incoming,
        story: CIMultiDict[str],
        linger: float,
        tokens: TokenCount | None = None,
    ) -> None:
        self._request = request
        self._call = call
        self._linger = linger
        self._tokens = tokens
        headers = call.headers
        for name, value in story.items():
            if name not in headers or name in _MAY_REPEAT:
                headers.add(name, value)
        self._is_event_stream = headers.get(hdrs.CONTENT_TYPE, "").lower().startswith("text/event-stream")
        if self._is_event_stream:
            headers.setdefault("X-Accel-Buffering", "no")
            headers.setdefault(hdrs.CACHE_CONTROL, "no-transform")
        self._tail = b""
        self._said_all = False
        self._response = RelayedResponse(call.status, call.reason, headers)

    @property
    def response(self) -> web.StreamResponse:
        """What the client gets."""
        return self._response

    @property
    def begun(self) -> bool:
        """Whether the client may have got a part of it."""
        return self._response.prepared

    async def run(self) -> None:
        """Stream until the end.

        Raises
        ------
        CallBroke
            If the server broke off; `break_off` is due if the answer has `begun`.
        ConnectionError
            If the client is gone.
        """
        call, response = self._call, self._response
        piece = await call.next_piece() if call.begun else b""
        response.begin(self._request)
        if not call.whole:
            self._note(piece)
            response.say(piece)
            piece = await (self._pour(call) if isinstance(call, Call) else self._copy(call))
        self._said_all = True
        self._note(piece)
        response.finish(piece, self._trailers())
        await response.drain()

    async def _pour(self, call: Call) -> bytes:
        """Pass on what comes in the turn in which it comes; return the last of it."""
        client = self._request.protocol
        if isinstance(client, Connection):
            client.when_writable = call.flow
        try:
            return await call.pour(self)
        finally:
            if isinstance(client, Connection):
                client.when_writable = None

    async def _copy(self, call: Incoming) -> bytes:
        """Pass on what others hold; return the last of it."""
        while True:
            await self._response.drain()
            piece = await call.next_piece()
            if call.whole:
                return piece
            self.take(piece)

    # -- for the call: `Sink`

    @property
    def ready(self) -> bool:
        """Whether the client takes more."""
        return self._response.ready

    def take(self, piece: bytes) -> None:
        """Pass it on; raises ConnectionError if the client is gone."""
        self._note(piece)
        self._response.say(piece)

    def break_off(self, refusal: Refusal) -> None:
        """End an answer that has begun so that the client can tell that it is not whole."""
        transport = self._request.transport
        if transport is None:
            return
        if self._may_add_an_event():
            event = error_event(refusal)
            transport.write(b"%x\r\n%b\r\n" % (len(event), event))
        if self._request.version < HttpVersion11 and not self._said_all:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            transport.abort()
        else:
            asyncio.get_running_loop().call_later(self._linger, transport.abort)
        self._request.protocol.force_close()

    def _note(self, piece: bytes) -> None:
        if self._tokens is not None:
            self._tokens.note(piece)
        if self._is_event_stream:
            self._tail = (self._tail + piece)[-4:]

    def _may_add_an_event(self) -> bool:
        stands_between_events = not self._tail or self._tail.endswith(_EVENT_ENDS)
        return (
            self._is_event_stream
            and self._response.is_chunked
            and stands_between_events
            and not self._said_all
        )

    def _trailers(self) -> list[tuple[str, str]]:
        """Return what is passed on behind the body: to who takes it (RFC 9110 §6.5.1)."""
        call = self._call
        if not isinstance(call, Call) or not call.trailers:
            return []
        accepted = self._request.headers.get(hdrs.TE, "").lower().split(",")
        if "trailers" not in (each.strip() for each in accepted):
            return []
        try:
            return list(end_to_end(call.trailers, without=TRAILERS_DROPPED).items())
        except BadHead:
            return []
