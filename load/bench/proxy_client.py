"""The client of the proxy benchmark: connections that ask, count and clock, and do little else."""

import asyncio
import json
import re
import time
from collections.abc import Callable

from load.bench.proxy_upstream import HELD, LARGE, LARGE_BYTES, SMALL

KEY = "sk-bench"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TIME = re.compile(rb'"content":"(\d{19})"')


def request(body: dict[str, object]) -> bytes:
    """Return a request for a completion."""
    said = json.dumps(body, separators=(",", ":")).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {KEY}\r\nContent-Length: {len(said)}\r\n\r\n"
    )
    return head.encode() + said


def prompt(text: str, **more: object) -> bytes:
    """Return a request with this prompt."""
    return request({"model": "m", "messages": [{"role": "user", "content": text}], **more})


SMALL_REQUEST = prompt(SMALL.decode())
LARGE_REQUEST = prompt(LARGE.decode() + "x" * (LARGE_BYTES - len(LARGE)))
HELD_REQUEST = prompt(HELD.decode() + "x" * (10 * 1024))


def stream_request(events: int, every: float) -> bytes:
    """Return a request for a stream of `events`, one `every` so long [s]."""
    return prompt(f"events={events} every={every}", stream=True)


class Connection(asyncio.Protocol):
    """Asks one thing at a time; `done` is told when the answer is whole, with its status."""

    def __init__(self, done: Callable[["Connection", int], None]) -> None:
        self._done = done
        self._head = b""
        self._left = -1
        self._status = 0
        self._transport: asyncio.Transport | None = None
        self.asked_at = 0.0
        self.events = 0
        self.delays: list[float] = []
        """How long each event was on its way [s]."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # the base class of all of them

    def connection_lost(self, exc: Exception | None) -> None:
        if self._left != -1:
            self._finish(0)
        self._transport = None

    def ask(self, said: bytes) -> None:
        """Send a request."""
        if self._transport is None:
            return
        self.asked_at = time.perf_counter()
        self._left = -2
        self._transport.write(said)

    def data_received(self, data: bytes) -> None:
        if self._left == -2:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = b""
            self._status = int(head[9:12])
            length = _LENGTH.search(head + b"\r\n")
            self._left = int(length[1]) if length else -3
        if self._left == -3:
            self._note_events(data)
            if data.endswith(b"0\r\n\r\n"):
                self._finish(self._status)
            return
        self._left -= len(data)
        if self._left <= 0:
            self._finish(self._status)

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._left = -1
            self._transport.abort()

    def _note_events(self, data: bytes) -> None:
        now = time.monotonic_ns()
        times = _TIME.findall(data)
        self.events += len(times)
        self.delays += [(now - int(said)) / 1e9 for said in times]

    def _finish(self, status: int) -> None:
        self._left = -1
        self._done(self, status)


async def connect(port: int, count: int, done: Callable[[Connection, int], None]) -> list[Connection]:
    """Open so many connections, a few at a time."""
    loop = asyncio.get_running_loop()
    connections: list[Connection] = []
    for _ in range(count):
        _, made = await loop.create_connection(lambda: Connection(done), "127.0.0.1", port)
        connections.append(made)
    return connections


class Counts:
    """What a run gave."""

    def __init__(self) -> None:
        self.good = 0
        self.bad = 0
        self.latencies: list[float] = []
        """Of the good ones [s]."""

    def note(self, connection: Connection, status: int) -> None:
        """Count one answer."""
        if status == 200:
            self.good += 1
            self.latencies.append(time.perf_counter() - connection.asked_at)
        else:
            self.bad += 1


async def closed_loop(port: int, said: bytes, connections: int, seconds: float) -> Counts:
    """Let each connection ask again as soon as it is answered."""
    counts, over = Counts(), False

    def again(connection: Connection, status: int) -> None:
        if not over:
            counts.note(connection, status)
            connection.ask(said)

    opened = await connect(port, connections, again)
    for each in opened:
        each.ask(said)
    await asyncio.sleep(seconds)
    over = True
    for each in opened:
        each.close()
    return counts


async def open_loop(port: int, said: bytes, rate: float, seconds: float) -> Counts:
    """Ask at `rate` [1/s], whatever the answers do; each on a connection of its own while it lasts."""
    counts, idle = Counts(), list[Connection]()

    def answered(connection: Connection, status: int) -> None:
        counts.note(connection, status)
        idle.append(connection)

    opened = await connect(port, 64, answered)
    idle += opened
    began, asked = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        while asked < elapsed * rate and idle:
            asked += 1
            idle.pop().ask(said)
        await asyncio.sleep(max(0.0, (asked + 1) / rate - elapsed))
    await asyncio.sleep(0.2)
    for each in opened:
        each.close()
    return counts


async def open_streams(port: int, count: int, events: int, every: float) -> list[Connection]:
    """Open `count` streams, evenly over one period."""
    opened = await connect(port, count, lambda connection, status: None)
    said = stream_request(events, every)
    for each in opened:
        each.ask(said)
        await asyncio.sleep(every / count)
    return opened
