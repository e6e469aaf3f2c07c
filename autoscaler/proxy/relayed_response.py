"""An answer of a server as it is written to a client: its head once, then its body piece by piece.

The library's own way of writing goes through several coroutines for each piece, and adds fields of its own.
Here the bytes go to the connection in the turn in which they come, the head together with the first of them.
Whoever writes looks whether the client takes more (`ready`), and waits if it does not.
"""

from collections.abc import Iterable

from aiohttp import HttpVersion10, HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import must_be_empty_body, rfc822_formatted_time, should_remove_content_length
from aiohttp.http_writer import _serialize_headers
from multidict import CIMultiDict

_COPIED_MAX = 16 * 1024
"""A chunk up to this is joined to its frame [bytes]; a longer one is not copied for it."""


class RelayedResponse(web.StreamResponse):
    """Carries the fields that it was given; of its own it adds only `Date`, if there is none."""

    def __init__(self, status: int, reason: str | None, headers: CIMultiDict[str]) -> None:
        super().__init__(status=status, reason=reason, _real_headers=headers)
        self._is_chunked = False
        self._has_body = True
        self._head = b""

    @property
    def ready(self) -> bool:
        """Whether the client takes more."""
        return self._req is None or not self._req.protocol.writing_paused

    @property
    def is_chunked(self) -> bool:
        """Whether the end of the body is said by its last chunk."""
        return self._is_chunked

    def begin(self, request: web.BaseRequest) -> None:
        """Make the head; it is sent with what is said first. From then on the answer has begun."""
        self._req = request
        self._payload_writer = request._payload_writer
        headers, version = self._headers, request.version
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        self._has_body = not must_be_empty_body(request.method, self._status)
        if not self._has_body:
            headers.popall(hdrs.TRANSFER_ENCODING, None)
            if should_remove_content_length(request.method, self._status):
                headers.popall(hdrs.CONTENT_LENGTH, None)
        elif hdrs.CONTENT_LENGTH not in headers:
            if version >= HttpVersion11:
                headers[hdrs.TRANSFER_ENCODING] = "chunked"
                self._is_chunked = True
            else:
                self._keep_alive = False
        if hdrs.DATE not in headers:
            headers[hdrs.DATE] = rfc822_formatted_time()
        if hdrs.CONNECTION not in headers:
            if self._keep_alive:
                if version == HttpVersion10:
                    headers[hdrs.CONNECTION] = "keep-alive"
            elif version == HttpVersion11:
                headers[hdrs.CONNECTION] = "close"
        line = f"HTTP/{version.major}.{version.minor} {self._status} {self._reason}"
        self._head = _serialize_headers(line, headers)

    def say(self, piece: bytes = b"") -> None:
        """Send what is left of the head, and `piece`. Raises ConnectionError if the client is gone."""
        if not piece or not self._has_body:
            self._write(b"")
        elif not self._is_chunked:
            self._write(piece)
        elif len(piece) <= _COPIED_MAX:
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
        else:
            self._write(b"%x\r\n" % len(piece))
            self._write(piece)
            self._write(b"\r\n")

    def finish(self, piece: bytes = b"", trailers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the last of the body and its end. Raises ConnectionError if the client is gone."""
        if not self._is_chunked:
            self.say(piece)
        else:
            end = "".join([f"{name}: {value}\r\n" for name, value in trailers]).encode()
            if len(piece) > _COPIED_MAX:
                self.say(piece)
                piece = b""
            chunk = b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
            self._write(b"%b0\r\n%b\r\n" % (chunk, end))
        self._eof_sent = True

    async def drain(self) -> None:
        """Wait until the client takes more; raises ConnectionError if it leaves."""
        if not self.ready and self._payload_writer is not None:
            await self._payload_writer.drain()

    # -- what the library asks of a response

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Nothing is left to prepare when the library asks, or its client is gone."""
        if not self.prepared:
            raise ConnectionResetError("the answer never began")
        return self._payload_writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write; an answer that was broken off gets no end."""
        if not self._eof_sent:
            raise ConnectionResetError("the answer was broken off")
        self._req = self._payload_writer = None

    def _write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        if not data or self._req is None or self._payload_writer is None:
            return
        transport = self._req.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._payload_writer.output_size += len(data)
        transport.write(data)
