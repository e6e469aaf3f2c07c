"""The model servers of the soak, and the trouble that befalls them.

Two are reached directly, and their processes are killed and stopped; two are reached through a `FaultProxy`,
and their network breaks. One trouble at a time, each for a moment, on one of those it can befall; then it is
mended, for the same moment, so that what recovers is seen to recover.
"""

import asyncio
import random
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Self

from load.free_port import free_port
from load.soak.fault_proxy import FaultProxy

ROOT = Path(__file__).parents[2]
_CUT_AFTER = 700
"""Into the head of an answer, or a few events of a stream [bytes]."""

_ACCEPTS_EVERY = 0.7
"""A slow accept [s]."""


class Server:
    """One process; started anew on the same port when it was killed."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; it listens a moment later."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "load.soak.server",
            "--port",
            str(self.port),
            cwd=ROOT,
            stderr=asyncio.subprocess.DEVNULL,  # of clients that left it tells with a traceback
        )

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, if it lives."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def kill(self) -> None:
        """End it without a word."""
        self.send(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()


class Servers:
    """Four servers. Used as a context; all are gone outside."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._servers = [Server() for _ in range(4)]
        self._ways = [FaultProxy(server.port) for server in self._servers[2:]]
        self._stack = AsyncExitStack()
        self.troubles: Counter[str] = Counter()
        """How often each trouble befell somebody."""

    async def __aenter__(self) -> Self:
        for server in self._servers:
            self._stack.push_async_callback(server.kill)
            await server.start()
        for way in self._ways:
            await self._stack.enter_async_context(way)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def urls(self) -> list[str]:
        """Where they are reached."""
        ports = [server.port for server in self._servers[:2]] + [way.port for way in self._ways]
        return [f"http://127.0.0.1:{port}" for port in ports]

    async def trouble(self, lasting: float) -> None:
        """Let one trouble after the other befall them, each `lasting` so long [s]. Mends when cancelled."""
        kinds: list[Callable[[float], Awaitable[None]]] = [
            self._killed, self._stopped, self._reset, self._silent, self._slow_accept, self._refused,
            self._cut,
        ]  # fmt: skip
        while True:
            for kind in self._rng.sample(kinds, len(kinds)):
                await asyncio.sleep(lasting)
                self.troubles[kind.__name__.strip("_")] += 1
                await kind(lasting)

    async def _killed(self, lasting: float) -> None:
        server = self._rng.choice(self._servers[:2])
        await server.kill()
        try:
            await asyncio.sleep(lasting)
        finally:
            await server.start()

    async def _stopped(self, lasting: float) -> None:
        server = self._rng.choice(self._servers[:2])
        server.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(lasting)
        finally:
            server.send(signal.SIGCONT)

    async def _reset(self, lasting: float) -> None:
        way = self._rng.choice(self._ways)
        for _ in range(3):
            way.reset_all()
            await asyncio.sleep(lasting / 3)

    async def _silent(self, lasting: float) -> None:
        way = self._rng.choice(self._ways)
        way.silent = True
        try:
            await asyncio.sleep(lasting)
        finally:
            way.silent = False

    async def _slow_accept(self, lasting: float) -> None:
        way = self._rng.choice(self._ways)
        way.slow_accept(_ACCEPTS_EVERY)
        way.reset_all()
        try:
            await asyncio.sleep(lasting)
        finally:
            way.slow_accept(0.0)

    async def _refused(self, lasting: float) -> None:
        way = self._rng.choice(self._ways)
        way.refuse = True
        way.reset_all()
        try:
            await asyncio.sleep(lasting)
        finally:
            way.refuse = False

    async def _cut(self, lasting: float) -> None:
        way = self._rng.choice(self._ways)
        way.cut_after = _CUT_AFTER
        try:
            await asyncio.sleep(lasting)
        finally:
            way.cut_after = 0
