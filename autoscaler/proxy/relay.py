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
from autoscaler.proxy.tenants.tokens import TokenCount

_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_MAY_REPEAT = ("Server-Timing",)
"""Fields that a server and a proxy may both add."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for 0 s: closing resets the connection."""


class RelayedResponse(web.StreamResponse):
    """Carries the fields that it was given; of its own it adds only `Date`, if there is none."""

    def send_head_with_body(self) -> None:
        """Let the head wait for the first piece of the body, which is here already."""
        self._send_headers_immediately = False

    async def _prepare_headers(self) -> None:
        absent = [name for name in (hdrs.CONTENT_TYPE, hdrs.SERVER) if name not in self.headers]
        await super()._prepare_headers()
        for name in absent:
            self.headers.popall(name, None)


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
        self._response = RelayedResponse(status=call.status, reason=call.reason, headers=headers)

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
        piece = b""
        if call.begun:
            response.send_head_with_body()
            piece = await call.next_piece()
        await response.prepare(self._request)
        while not call.whole:
            if piece:
                self._note(piece)
                await response.write(piece)
            piece = await call.next_piece()
        self._said_all = True
        self._note(piece)
        await response.write_eof(piece)

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
        is_chunked = hdrs.TRANSFER_ENCODING in self._response.headers
        stands_between_events = not self._tail or self._tail.endswith(_EVENT_ENDS)
        return self._is_event_stream and is_chunked and stands_between_events and not self._said_all
