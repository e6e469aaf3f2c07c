"""A way to a server that breaks on request: TCP in, TCP out, on the loopback.

Every attribute may be changed while connections are open. What is changed holds for all of them.
"""

import asyncio
import socket
import struct
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self

_PIECE = 64 * 1024
_BACKLOG, _SHORT_BACKLOG = 512, 1
_LOOK = 0.01
"""How often a stalled connection looks whether it may go on [s]."""

_RESET = struct.pack("ii", 1, 0)


class FaultProxy:
    """Passes on what comes to its `port`, to `upstream` on this machine."""

    def __init__(self, upstream: int) -> None:
        self.refuse = False
        """Reset whoever connects."""
        self.silent = False
        """Accept, and pass nothing on, nor what was begun: a black hole."""
        self.cut_after = 0
        """Reset after so many bytes of the server's; 0 never [bytes]."""
        self._accept_delay = 0.0
        self._upstream = upstream
        self._listener = socket.socket()
        self._open: set[socket.socket] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._listener.setblocking(False)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(_BACKLOG)
        self.port = self._listener.getsockname()[1]
        self._start(self._accept())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listener.close()

    def slow_accept(self, delay: float) -> None:
        """Accept one connection every `delay` [s], with hardly any room for those who wait; 0 as usual."""
        self._accept_delay = delay
        self._listener.listen(_SHORT_BACKLOG if delay else _BACKLOG)

    def reset_all(self) -> None:
        """Reset every connection."""
        for sock in self._open:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                sock.shutdown(socket.SHUT_RDWR)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._accept_delay)
            sock, _ = await loop.sock_accept(self._listener)
            sock.setblocking(False)
            self._start(self._relay(sock))

    async def _relay(self, client: socket.socket) -> None:
        server = socket.socket()
        server.setblocking(False)
        self._open |= {client, server}
        both = []
        try:
            if not self.refuse:
                await asyncio.get_running_loop().sock_connect(server, ("127.0.0.1", self._upstream))
                both = [
                    asyncio.create_task(self._pump(client, server, up=True)),
                    asyncio.create_task(self._pump(server, client, up=False)),
                ]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            for pump in both:
                pump.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._open -= {client, server}
            for sock in (client, server):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                sock.close()

    async def _pump(self, source: socket.socket, target: socket.socket, *, up: bool) -> None:
        loop, passed = asyncio.get_running_loop(), 0
        while data := await loop.sock_recv(source, _PIECE):
            while self.silent:  # noqa: ASYNC110 - an attribute, set by whoever plays with this
                await asyncio.sleep(_LOOK)
            if not up and self.cut_after and passed + len(data) > self.cut_after:
                await loop.sock_sendall(target, data[: self.cut_after - passed])
                await asyncio.sleep(_LOOK)  # let what was sent arrive before the reset
                return
            await loop.sock_sendall(target, data)
            passed += len(data)
