"""Clients that leave: in the head, in the body, in the queue, in mid-answer; with a goodbye or a reset."""

import asyncio
import random
import socket
import struct
from collections import Counter

_RESET = struct.pack("ii", 1, 0)
_PATIENCE = 20.0
"""None stays longer [s]."""

_HEAD = b"Host: soak\r\nContent-Length: 50000\r\n\r\n"


class RudeClients:
    """Comes, asks for something, and leaves."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self._port = port
        self._rng = rng
        self.left: Counter[str] = Counter()
        """How many left where."""
        self.stopped = False

    async def run(self, rate: float) -> None:
        """Come at `rate` [1/s] until told to stop; returns when all are gone."""
        here: set[asyncio.Task[None]] = set()
        ways = (self._in_head, self._in_body, self._in_queue, self._in_stream, self._slowly, self._in_a_row)
        while not self.stopped:
            way = self._rng.choice(ways)
            task = asyncio.create_task(self._visit(way.__name__.strip("_"), way()))
            here.add(task)
            task.add_done_callback(here.discard)
            await asyncio.sleep(self._rng.expovariate(rate))
        await asyncio.gather(*here)

    async def _visit(self, name: str, words: tuple[bytes, float, int]) -> None:
        """Say `words`, stay a while, take some bytes of the answer if there are any, and leave."""
        said, stay, take = words
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setblocking(False)
        try:
            async with asyncio.timeout(_PATIENCE):
                await loop.sock_connect(sock, ("127.0.0.1", self._port))
                await loop.sock_sendall(sock, said)
                while take > 0 and (piece := await loop.sock_recv(sock, min(take, 4096))):
                    take -= len(piece)
                    await asyncio.sleep(stay / 10)
                await asyncio.sleep(stay)
        except (OSError, TimeoutError):
            name += ", was shown out"
        finally:
            if self._rng.random() < 0.5:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.close()
            self.left[name] += 1

    def _in_head(self) -> tuple[bytes, float, int]:
        whole = b"POST /echo HTTP/1.1\r\n" + _HEAD
        return whole[: self._rng.randrange(len(whole))], self._rng.uniform(0.0, 0.2), 0

    def _in_body(self) -> tuple[bytes, float, int]:
        body = bytes(self._rng.randrange(50_000))
        return b"POST /echo HTTP/1.1\r\n" + _HEAD + body, self._rng.uniform(0.0, 0.2), 0

    def _in_queue(self) -> tuple[bytes, float, int]:
        return b"POST /echo HTTP/1.1\r\n" + _HEAD + bytes(50_000), self._rng.expovariate(100.0), 0

    def _in_stream(self) -> tuple[bytes, float, int]:
        return b"GET /stream HTTP/1.1\r\nHost: soak\r\n\r\n", 0.0, self._rng.randrange(1, 400)

    def _slowly(self) -> tuple[bytes, float, int]:
        return b"GET /large HTTP/1.1\r\nHost: soak\r\n\r\n", 0.3, self._rng.randrange(1, 100_000)

    def _in_a_row(self) -> tuple[bytes, float, int]:
        few = self._rng.randrange(2, 5)
        return b"GET /stream HTTP/1.1\r\nHost: soak\r\n\r\n" * few, self._rng.uniform(0.0, 0.3), 0
