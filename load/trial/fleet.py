"""The fleet: pairs of a sidecar and its model server, of which there are as many as the web hook asks for.

It does what a cluster does. A pair is ready when its sidecar says so; one that is to go is taken from the
list first, then ends in order; a sidecar that died is started anew beside its server, at the same ports.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from load.free_port import free_address
from load.trial.child import Child
from load.trial.plan import Trial

POOL = "chat"
_LOOK = 0.2
"""Between two looks at who is ready [s]."""
_RESTARTS_AFTER = 1.0
"""A sidecar that died is started anew [s]."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair may be: the addresses of the doors of its sidecar."""

    url: str
    admin: str


class Pair:
    """A model server, and the sidecar before it."""

    def __init__(self, number: int, place: Place, trial: Trial, folder: Path) -> None:
        self.number, self.place = number, place
        self.url, self.admin = place.url, place.admin
        server = free_address()
        self.is_ready = False
        words = ["--port", server.rpartition(":")[2], "--slots", str(trial.slots), "--scv", "1"]
        words += ["--service-time", str(trial.service), "--start-delay", str(trial.load_time)]
        command = [sys.executable, "-m", "load.model_server", *words]
        self.server = Child(f"model server {number}", command, folder / f"server-{number}.log")
        file = folder / f"sidecar-{number}.yaml"
        file.write_text(yaml.safe_dump(self._configuration(server, trial)))
        command = [sys.executable, "-m", "autoscaler", "sidecar", "-c", str(file)]
        self.sidecar = Child(f"sidecar {number}", command, folder / f"sidecar-{number}.log")

    def _configuration(self, server: str, trial: Trial) -> dict[str, Any]:
        platform = {"kind": "static", "urls": [f"http://{server}"], "probe_interval": "500ms"}
        pool = {"slots_per_replica": trial.slots, "platform": platform}
        return {
            "listen": self.url,
            "admin": self.admin,
            "drain": {"grace": "500ms", "max": "30s"},
            "pools": {POOL: pool},
        }

    async def start(self) -> None:
        """Start both."""
        await self.server.start()
        await self.sidecar.start()

    async def end(self) -> None:
        """End both in order: the sidecar first, which lets what is in flight end."""
        self.is_ready = False
        await self.sidecar.end()
        await self.server.end()

    async def look(self, session: aiohttp.ClientSession) -> None:
        """Ask whether it takes requests."""
        try:
            async with session.get(f"http://{self.admin}/readyz") as answer:
                self.is_ready = answer.status == 200 and self.sidecar.lives
        except (aiohttp.ClientError, OSError):  # TimeoutError is one
            self.is_ready = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One event of the web hook."""

    time: float
    """[s, monotonic]"""
    by: str
    """Name of the controller."""
    desired: int


class Fleet:
    """Who is asked for how many; used as a context, within which it listens, and all is gone outside.

    Parameters
    ----------
    trial : Trial
        What a pair is made of.
    folder : Path
        Of the files of all.
    listed : callable
        Told the admin addresses of all pairs whenever they change: who scrapes them must know.
    """

    def __init__(self, trial: Trial, folder: Path, listed: Callable[[list[str]], None]) -> None:
        self._trial, self._folder, self._listed = trial, folder, listed
        self.desired = trial.replicas_min
        self.asked: list[Asked] = []
        self.pairs: list[Pair] = []
        self.restarts = 0
        self.places = tuple(Place(free_address(), free_address()) for _ in range(trial.replicas_max))
        """All that there are; a pair has one until it has ended."""
        self._numbers = 0
        self._turn = 0
        self._taken: set[Place] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stack = AsyncExitStack()
        self.address = ""

    async def __aenter__(self) -> "Fleet":
        application = web.Application()
        application.router.add_post("/scale", self._scale)
        application.router.add_get("/fleet", self._fleet)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        self.address = f"{host}:{port}"
        self._stack.push_async_callback(self._end)
        for work in (self._reconcile(), self._look()):
            task = asyncio.create_task(work)
            self._stack.push_async_callback(_cancelled, task)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def __repr__(self) -> str:
        return f"<Fleet desired={self.desired} ready={len(self.ready)}>"

    @property
    def ready(self) -> list[Pair]:
        """Pairs that take requests."""
        return [pair for pair in self.pairs if pair.is_ready]

    def door(self) -> str:
        """Return where the next request goes: to those that are ready, in turn."""
        ready = self.ready or self.pairs
        self._turn += 1
        return f"http://{ready[self._turn % len(ready)].url}"

    async def until_ready(self, replicas: int) -> None:
        """Wait until so many take requests."""
        while len(self.ready) < replicas:  # noqa: ASYNC110 - it is looked for beside
            await asyncio.sleep(_LOOK)

    async def _scale(self, request: web.Request) -> web.Response:
        event = await request.json()
        self.desired = int(event["data"]["desired"])
        self.asked.append(Asked(time.monotonic(), request.query["by"], self.desired))
        self._changed.set()
        return web.json_response({})

    async def _fleet(self, request: web.Request) -> web.Response:
        ready = [f"http://{pair.admin}" for pair in self.ready]
        return web.json_response({"ready": ready, "starting": len(self.pairs) - len(ready)})

    async def _reconcile(self) -> None:
        """Start and end pairs, for ever."""
        while True:
            free = [place for place in self.places if place not in self._taken]
            for place in free[: max(0, self.desired - len(self.pairs))]:
                self._numbers += 1
                self._taken.add(place)
                self.pairs.append(Pair(self._numbers, place, self._trial, self._folder))
                await self.pairs[-1].start()
            while len(self.pairs) > self.desired:
                leaving = asyncio.create_task(self._leave(self.pairs.pop()))
                self._leaving.add(leaving)
                leaving.add_done_callback(self._leaving.discard)
            self._listed([pair.admin for pair in self.pairs])
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_RESTARTS_AFTER):
                    await self._changed.wait()
            for pair in self.pairs:
                if not pair.sidecar.lives:
                    self.restarts += 1
                    await pair.sidecar.start()

    async def _leave(self, pair: Pair) -> None:
        await pair.end()
        self._taken.discard(pair.place)

    async def _look(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session:
            while True:
                await asyncio.gather(*(pair.look(session) for pair in self.pairs))
                await asyncio.sleep(_LOOK)

    async def _end(self) -> None:
        await asyncio.gather(*(pair.end() for pair in self.pairs), *self._leaving)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
