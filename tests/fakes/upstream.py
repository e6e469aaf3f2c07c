"""A model server whose every byte is said by the test.

A script is called with the wire and the request for each request that comes, on each connection; what it
does not say is not said. When it returns, the next request on the same connection is awaited.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from autoscaler.ports import Replica
from tests.fakes.wire import Head, Wire


@dataclass(frozen=True)
class Received:
    head: Head
    body: bytes


Script = Callable[["UpstreamWire", Received], Awaitable[None]]


def says(body: bytes = b"ok", *fields: str, status: str = "200 OK") -> Script:
    """A script that answers at once, with a counted body."""
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}"]

    async def script(wire: "UpstreamWire", request: Received) -> None:
        wire.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return script


async def says_nothing(wire: "UpstreamWire", request: Received) -> None:
    """Takes the request and works on it for ever."""
    await wire.closed.wait()


class UpstreamWire(Wire):
    def __init__(self, server: "Upstream") -> None:
        super().__init__()
        self.server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.server.wires.append(self)
        self.task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            while True:
                if self.server.reads_bodies:
                    head = await self.head()
                    received = Received(head, await self.body(head))
                else:
                    received = Received(await self.head(), b"")
                self.server.requests.append(received)
                self.server.news.set()
                self.server.running += 1
                try:
                    await self.server.script(self, received)
                finally:
                    self.server.running -= 1
        except EOFError:
            self.close()

    def send_head(self, *fields: str, status: str = "200 OK") -> None:
        self.send("\r\n".join([f"HTTP/1.1 {status}", *fields]).encode() + b"\r\n\r\n")

    def send_chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))


class Upstream:
    """Listens on a port of its own; `requests` and `wires` are what has come so far."""

    def __init__(self, script: Script | None = None, *, reads_bodies: bool = True) -> None:
        self.script = script or says()
        self.reads_bodies = reads_bodies
        self.requests: list[Received] = []
        self.wires: list[UpstreamWire] = []
        self.running = 0
        """Scripts that have not returned yet."""
        self.news = asyncio.Event()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: UpstreamWire(self), "127.0.0.1", 0)
        self.port: int = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop_listening()
        for wire in self.wires:
            wire.task.cancel()
            wire.transport.abort()
        await asyncio.gather(*(wire.task for wire in self.wires), return_exceptions=True)

    def stop_listening(self) -> None:
        self._listener.close()

    def replica(self, slots: int = 1, id: str | None = None) -> Replica:
        return Replica(id or f"r{self.port}", f"http://127.0.0.1:{self.port}", slots)

    async def got(self, count: int) -> Received:
        """Wait until `count` requests have come; return the last of them."""
        async with asyncio.timeout(10):
            while len(self.requests) < count:
                self.news.clear()
                await self.news.wait()
        return self.requests[count - 1]
