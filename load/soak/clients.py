"""Clients that behave, and check every byte of what they get.

Every request ends once, and how is written down: `ok`, a status of the contract by which trouble is told, or
an answer that broke off and looks broken off. Anything else is a violation: another status, a wrong byte, an
answer that looks whole and is not, a connection that ends without an answer, a request that never ends.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp

from load.soak.server import EVENTS, LARGE, digest

CONTRACT = frozenset((429, 502, 503, 504))
"""Statuses by which a request may end while servers are in trouble."""

HANGS_AFTER = 60.0
"""A request without an end after this hangs [s]; every limit of the configuration is far below."""

_VIOLATIONS_MAX = 50
"""So many are told in full [1]; all are counted."""


class Ends:
    """How requests ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []

    @property
    def open(self) -> int:
        """Requests without an end [1]."""
        return self.begun - self.counts.total()

    def end(self, how: str, violation: str | None = None) -> None:
        """Write down one end."""
        self.counts[how] += 1
        if violation is not None and len(self.violations) < _VIOLATIONS_MAX:
            self.violations.append(violation)


class Violation(Exception):
    """What must not happen has; the text says what."""


class Clients:
    """Asks one thing after the other, until told to stop."""

    def __init__(self, url: str, ends: Ends, rng: random.Random) -> None:
        self._url = url
        self._ends = ends
        self._rng = rng
        self.stopped = False
        self._kinds: list[Callable[[aiohttp.ClientSession], Awaitable[None]]] = [
            self._echo, self._echo, self._echo, self._upload, self._stream, self._large, self._websocket,
        ]  # fmt: skip

    async def run(self, clients: int) -> None:
        """Let so many ask at a time; returns when all have their last answer."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=HANGS_AFTER)
        async with aiohttp.ClientSession(self._url, connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(self._one(session) for _ in range(clients)))

    async def _one(self, session: aiohttp.ClientSession) -> None:
        while not self.stopped:
            await self._ask(session, self._rng.choice(self._kinds))
            await asyncio.sleep(self._rng.uniform(0.0, 0.05))

    async def _ask(
        self, session: aiohttp.ClientSession, kind: Callable[[aiohttp.ClientSession], Awaitable[None]]
    ) -> None:
        name = kind.__name__.strip("_")
        self._ends.begun += 1
        try:
            await kind(session)
        except _Refused as refused:
            known = refused.status in CONTRACT
            self._ends.end(str(refused.status), None if known else f"{name}: status {refused.status}")
        except (aiohttp.ClientPayloadError, _BrokeOff):
            self._ends.end("broke off")
        except TimeoutError:
            self._ends.end("hung", f"{name}: no end after {HANGS_AFTER:g} s")
        except (Violation, aiohttp.ClientError, OSError) as wrong:
            self._ends.end("violation", f"{name}: {type(wrong).__name__}: {wrong}")
        else:
            self._ends.end("ok")

    async def _echo(self, session: aiohttp.ClientSession) -> None:
        body = os.urandom(self._rng.choice((0, 20, 2_000, 40_000)))
        async with session.post("/echo", data=body) as answer:
            _check(await _whole(answer), digest(body).encode())

    async def _upload(self, session: aiohttp.ClientSession) -> None:
        pieces = [os.urandom(self._rng.randrange(1, 30_000)) for _ in range(self._rng.randrange(1, 20))]

        async def dripping() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
                await asyncio.sleep(0.002)

        async with session.post("/echo", data=dripping()) as answer:
            _check(await _whole(answer), digest(b"".join(pieces)).encode())

    async def _stream(self, session: aiohttp.ClientSession) -> None:
        async with session.get("/stream") as answer:
            said = await _whole(answer)
        if said.endswith(b"[DONE]\n\n"):
            _check(said, b"".join(b"data: %d\n\n" % n for n in range(EVENTS)) + b"data: [DONE]\n\n")
        else:
            raise Violation(f"a stream that looks whole ends with {said[-60:]!r}")

    async def _large(self, session: aiohttp.ClientSession) -> None:
        async with session.get("/large") as answer:
            _check(await _whole(answer), LARGE)

    async def _websocket(self, session: aiohttp.ClientSession) -> None:
        try:
            async with session.ws_connect("/ws") as socket:
                for number in range(self._rng.randrange(1, 6)):
                    await socket.send_str(str(number))
                    if (message := await socket.receive()).type != aiohttp.WSMsgType.TEXT:
                        raise _BrokeOff
                    _check(message.data.encode(), str(number).encode())
        except aiohttp.WSServerHandshakeError as refused:
            raise _Refused(refused.status) from refused
        except (ConnectionError, aiohttp.ClientConnectionResetError) as broken:
            raise _BrokeOff from broken


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _BrokeOff(Exception):
    pass


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of a good answer; raises what tells of a bad one."""
    body = await answer.read()
    if answer.status != 200:
        raise _Refused(answer.status)
    return body


def _check(got: bytes, wanted: bytes) -> None:
    if got != wanted:
        raise Violation(f"wanted {wanted[:40]!r} ({len(wanted)} bytes), got {got[:40]!r} ({len(got)} bytes)")
