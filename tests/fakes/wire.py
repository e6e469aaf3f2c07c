"""One end of a TCP connection, spoken byte by byte, for scripted clients and servers."""

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import Self

PATIENCE = 10.0
"""A test that waits longer for bytes than this has failed [s]."""


@dataclass(frozen=True)
class Head:
    """A start line and header fields, as they came."""

    start: str
    fields: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        start, *lines = raw.decode("latin-1").split("\r\n")
        return cls(
            start, tuple((name, value.strip()) for name, _, value in (x.partition(":") for x in lines))
        )

    def all(self, name: str) -> list[str]:
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    @property
    def method(self) -> str:
        return self.start.split(" ")[0]

    @property
    def target(self) -> str:
        return self.start.split(" ")[1]


class Wire(asyncio.Protocol):
    """Reads when asked to, knows when the other end has closed, and how."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.closed = asyncio.Event()
        """The other end has closed, cleanly or not."""
        self.closed_at: float | None = None
        self.was_reset = False
        self._news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._news.set()

    def eof_received(self) -> None:
        self._note_closed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.was_reset = self.was_reset or isinstance(exc, ConnectionError)
        self._note_closed()

    def _note_closed(self) -> None:
        if not self.closed.is_set():
            self.closed_at = asyncio.get_running_loop().time()
        self.closed.set()
        self._news.set()

    # -- speaking

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def close(self) -> None:
        self.transport.close()

    def reset(self) -> None:
        sock: socket.socket = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    # -- listening

    async def _more(self) -> bool:
        """Wait for more bytes; False if there will be none."""
        if self.closed.is_set():
            return False
        self._news.clear()
        async with asyncio.timeout(PATIENCE):
            await self._news.wait()
        return True

    async def until(self, mark: bytes) -> bytes:
        """Everything up to and with `mark`. Raises EOFError, with what there was, if it never comes."""
        while (at := self.buffer.find(mark)) < 0:
            if not await self._more():
                raise EOFError(bytes(self.buffer))
        return self._take(at + len(mark))

    async def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not await self._more():
                raise EOFError(bytes(self.buffer))
        return self._take(count)

    async def rest(self) -> bytes:
        """Everything until the other end closes."""
        while await self._more():
            pass
        return self._take(len(self.buffer))

    async def wait_closed(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.closed.wait()

    def _take(self, count: int) -> bytes:
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    # -- HTTP

    async def head(self) -> Head:
        return Head.parse((await self.until(b"\r\n\r\n"))[:-4])

    async def chunk(self) -> bytes:
        """One chunk of a chunked body; empty at the last."""
        size = int((await self.until(b"\r\n"))[:-2].partition(b";")[0], 16)
        data = await self.exactly(size)
        assert await self.exactly(2) == b"\r\n"
        return data

    async def body(self, head: Head) -> bytes:
        """The body by its framing; what is neither counted nor chunked has none."""
        if (head.get("Transfer-Encoding") or "").lower() == "chunked":
            assert head.get("Content-Length") is None, "two framings at once"
            parts = []
            while part := await self.chunk():
                parts.append(part)
            return b"".join(parts)
        return await self.exactly(int(head.get("Content-Length") or 0))
