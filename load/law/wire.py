"""Client and model server of the law test, in one loop and on one clock, with the proxy between them.

The client sends at given times, each request on a connection of its own while it lasts; the server works on
whatever comes for as long as the request says, and keeps no slots: who may come is the proxy's business. Both
write down when it really happened: timers are late, and what counts is what was, not what was meant.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from load.law.recursion import Floats

SERVICE, NUMBER = "X-Law-Service", "X-Law-Number"
PATIENCE = 120.0
"""So long after the last arrival everything must be over [s]."""

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_CONNECTIONS = 32
"""Open before the first request; more are opened when all are taken [1]."""


@dataclass
class Seen:
    """What happened to each request; NaN where it did not happen. Arrays of shape (n,) [s]."""

    sent: Floats
    begun: Floats
    ended: Floats
    statuses: dict[int, int] = field(default_factory=dict)
    """How many answers had which status."""

    @classmethod
    def nothing(cls, count: int) -> "Seen":
        """Return a record in which nothing has happened to `count` requests."""
        return cls(np.full(count, np.nan), np.full(count, np.nan), np.full(count, np.nan))

    def in_order_of_arrival(self) -> "Seen":
        """Return it sorted by when the requests were sent, without those that never reached the server."""
        order = np.argsort(self.sent, kind="stable")
        order = order[~np.isnan(self.ended[order])]
        return Seen(self.sent[order], self.begun[order], self.ended[order], self.statuses)


class ModelServer(asyncio.Protocol):
    """One connection: serves what comes on it for as long as it asks; writes it into what `seen` gives."""

    def __init__(self, seen: Callable[[], Seen]) -> None:
        self._seen = seen
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # the base class of all of them

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        service, number = field_of(self._received, SERVICE), field_of(self._received, NUMBER)
        self._received = b""
        if number is None:  # a probe
            self._say(_ANSWER)
            return
        seen = self._seen()
        seen.begun[int(number)] = now
        asyncio.get_running_loop().call_later(float(service or 0), self._answer, seen, int(number))

    def _answer(self, seen: Seen, number: int) -> None:
        self._say(_ANSWER)
        seen.ended[number] = time.monotonic()

    def _say(self, words: bytes) -> None:
        if self._transport is not None:
            self._transport.write(words)


class Client(asyncio.Protocol):
    """One connection: sends a request, tells with which status it is answered (0: not), and may ask again."""

    def __init__(self, answered: Callable[["Client", int], None]) -> None:
        self._answered = answered
        self._asks = False
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # the base class of all of them

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._asks:
            self._answered(self, 0)

    @property
    def closed(self) -> bool:
        """Whether it can ask nothing any more: a proxy closes who idles for long."""
        return self._transport is None or self._transport.is_closing()

    def ask(self, number: int, service: float) -> None:
        """Send one request that takes `service` [s]."""
        self._asks = True
        if self._transport is not None:
            head = f"GET /law HTTP/1.1\r\nHost: law\r\n{SERVICE}: {service:.9f}\r\n{NUMBER}: {number}\r\n\r\n"
            self._transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < int(field_of(head + end, "Content-Length") or 0):
            return
        self._received, self._asks = b"", False
        self._answered(self, int(head.split(b" ", 2)[1]))

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()


class Clients:
    """Sends every request when it is due; `run` returns when all are answered."""

    def __init__(self, port: int, seen: Seen) -> None:
        self._port = port
        self._seen = seen
        self._idle: list[Client] = []
        self._all: list[Client] = []
        self._left = len(seen.sent)
        self._over = asyncio.Event()

    async def run(self, arrivals: Floats, services: Floats) -> None:
        """Send request i at `arrivals[i]` [s from now], to be served for `services[i]` [s].

        Raises
        ------
        TimeoutError
            If not all are answered `PATIENCE` after the last was sent.
        """
        for _ in range(_CONNECTIONS):
            self._idle.append(await self._new())
        began, connecting = time.monotonic(), set()
        try:
            for number, (arrival, service) in enumerate(
                zip(arrivals.tolist(), services.tolist(), strict=True)
            ):
                if (early := began + arrival - time.monotonic()) > 0:
                    await asyncio.sleep(early)
                while self._idle and self._idle[-1].closed:
                    self._idle.pop()
                if self._idle:
                    self._send(self._idle.pop(), number, service)
                else:
                    task = asyncio.create_task(self._send_on_new(number, service))
                    connecting.add(task)
                    task.add_done_callback(connecting.discard)
            async with asyncio.timeout(PATIENCE):
                await self._over.wait()
        finally:
            for client in self._all:
                client.close()

    def _send(self, client: Client, number: int, service: float) -> None:
        self._seen.sent[number] = time.monotonic()
        client.ask(number, service)

    async def _send_on_new(self, number: int, service: float) -> None:
        self._send(await self._new(), number, service)

    async def _new(self) -> Client:
        _, client = await asyncio.get_running_loop().create_connection(
            lambda: Client(self._answered), "127.0.0.1", self._port
        )
        self._all.append(client)
        return client

    def _answered(self, client: Client, status: int) -> None:
        self._seen.statuses[status] = self._seen.statuses.get(status, 0) + 1
        self._idle.append(client)
        self._left -= 1
        if not self._left:
            self._over.set()


def field_of(head: bytes, name: str) -> str | None:
    """Return the value of a field in a message head that ends with an empty line."""
    mark = b"\r\n" + name.lower().encode() + b":"
    at = head.lower().find(mark)
    if at < 0:
        return None
    start = at + len(mark)
    return head[start : head.index(b"\r\n", start)].decode().strip()
