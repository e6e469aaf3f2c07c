"""The body of one request on its way through: read ahead up to a bound, then streamed.

What was read ahead stays until it is sent, so a body that fits can be sent again. The rest is read from the
client no faster than the server takes it. Nothing is decoded or parsed.

A client must keep up with a slowest rate; it may fall behind by a stated patience. Only the time spent
waiting for the client counts, so a slow server makes no client late.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from copy import copy
from typing import Protocol

import aiohttp
from aiohttp import web

from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.between import pass_on_between
from autoscaler.proxy.options import ProxyOptions

Pieces = AsyncGenerator[bytes, None]

Payload = bytes | Pieces | None
"""What is sent of a body: nothing, all of it, or a stream that reads on from the client."""


_NOTHING: deque[bytes] = deque()
"""In the place of the buffer of a reader that has given all it will ever have; nobody adds to it."""


class Body(Protocol):
    """What a call asks of the body that it sends."""

    on_progress: Callable[[], None] | None
    """Called whenever a piece came in or was passed on while streaming."""

    @property
    def complete(self) -> bool:
        """Whether all of it has been received."""

    def payload(self) -> Payload:
        """Return what to send now."""


class SpoolBudget:
    """Memory for what is read ahead, of all requests together."""

    def __init__(self, bytes_total: int) -> None:
        self.bytes_left = bytes_total


class RequestBody:
    """One body. Whoever made it calls `release` when the request is over.

    Raises `Refused`, from whatever reads, with 413 if the body is larger than allowed, 408 if it comes too
    slowly, 400 if its framing is broken.
    """

    __slots__ = (
        "_budget", "_chunks", "_content", "_options", "_received", "_request", "_waited", "complete",
        "consumed", "declared", "failure", "on_progress", "spooled",
    )  # fmt: skip

    def __init__(self, request: web.BaseRequest, options: ProxyOptions, budget: SpoolBudget) -> None:
        self._request = request
        self._content = request.content
        self._options = options
        self._budget = budget
        self._chunks: list[bytes] = []
        self._received = 0
        self._waited = 0.0
        self.spooled = 0
        """Bytes that are held now."""
        self.declared = request.content_length
        """Its length by its head [bytes], or None."""
        self.complete = _is_whole(request.content)
        """Whether all of it has been received."""
        self.consumed = False
        """Whether a part was passed on that is not held any more: it cannot be sent again."""
        self.failure: Refusal | None = None
        """Why streaming it failed, if the client is to blame."""
        self.on_progress: Callable[[], None] | None = None
        """Called whenever a piece came in or was passed on while streaming."""
        if self.declared is not None and self.declared > options.body_bytes_max:
            raise Refused(self._too_large())

    async def spool(self) -> None:
        """Read ahead until the body is complete or the bound of one body, or of all, is reached."""
        while not self.complete and self.spooled < self._options.body_spool_bytes:
            if self._budget.bytes_left <= 0:
                return
            if chunk := await self._next():
                self._chunks.append(chunk)
                self.spooled += len(chunk)
                self._budget.bytes_left -= len(chunk)
            self.complete = _is_whole(self._content)
        if self.complete:
            self._content._buffer = (
                _NOTHING  # its own takes as much memory empty as all that we note of a body
            )

    def held(self) -> bytes:
        """Return what was read ahead and is held."""
        if len(self._chunks) > 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

    def payload(self) -> Payload:
        """Return what to send now."""
        if not self.complete:
            return self._stream()
        return self.held() if self._chunks else None

    def between(self, status: int, fields: list[tuple[bytes, bytes]]) -> None:
        """Tell whoever sends the body what the server says before its answer (1xx)."""
        pass_on_between(self._request, status, fields)

    def handed_over(self) -> "RequestBody":
        """Return a body that has what is held here, and owes its `release`; this one holds nothing then."""
        heir = copy(self)
        self._chunks, self.spooled = [], 0
        return heir

    def release(self) -> None:
        """Give back the memory; what is held cannot be sent again."""
        self._chunks.clear()
        self._budget.bytes_left += self.spooled
        self.spooled = 0

    async def _stream(self) -> Pieces:
        for chunk in self._chunks:
            yield chunk
        self.consumed = True
        self.release()
        while chunk := await self._next_streamed():
            yield chunk
            self._tell_progress()
        self.complete = True

    async def _next_streamed(self) -> bytes:
        try:
            return await self._next()
        except Refused as refused:
            self.failure = refused.refusal
            raise
        finally:
            self._tell_progress()

    async def _next(self) -> bytes:
        """Return what has arrived, waiting if nothing has; empty at the end."""
        try:
            chunk = self._content.read_nowait()
            if not chunk and not self._content.at_eof():
                chunk = await self._wait_for_client()
        except web.RequestPayloadError as broken:
            text = f"The request body is broken: {broken}."
            raise Refused(Refusal(400, "broken_body", text)) from broken
        self._received += len(chunk)
        if self._received > self._options.body_bytes_max:
            raise Refused(self._too_large())
        return chunk

    async def _wait_for_client(self) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()
        allowed = self._options.body_timeout + self._received / self._options.body_rate_min
        try:
            async with asyncio.timeout(allowed - self._waited):
                return await self._content.readany()
        except TimeoutError as late:
            text = (
                f"The request body came too slowly: {self._received} bytes in {allowed:.3g} s; "
                f"at least {self._options.body_rate_min:.0f} bytes/s are asked for."
            )
            raise Refused(Refusal(408, "body_too_slow", text)) from late
        finally:
            self._waited += loop.time() - began

    def _tell_progress(self) -> None:
        if self.on_progress is not None:
            self.on_progress()

    def _too_large(self) -> Refusal:
        size = f"{self.declared} bytes" if self.declared is not None else "longer"
        text = f"The request body is {size}; at most {self._options.body_bytes_max} bytes are taken here."
        return Refusal(413, "body_too_large", text)


def _is_whole(content: aiohttp.StreamReader) -> bool:
    """Whether all has been received and read, and nothing was wrong with it."""
    return content.at_eof() and content.exception() is None
