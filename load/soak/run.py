"""One soak: everything started, load and trouble for a while, then silence, and what is left in it."""

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from load.demo.program import Program
from load.demo.run import beside
from load.free_port import free_address
from load.soak.clients import Clients, Ends
from load.soak.rude import RudeClients
from load.soak.servers import ROOT, Servers
from load.soak.watch import Sample, Watch

SLOTS_PER_SERVER = 8
_READY_WITHIN = 60.0  # [s]
_SILENT_WITHIN = 60.0
"""After the last client has gone, everything must have ended by then [s]."""

_IDLE_CONNECTIONS_CLOSE = 6.0
"""Connections to servers may idle for 4 s [s]."""


@dataclass(frozen=True)
class Soak:
    """What is to be done."""

    seconds: float
    clients: int = 24
    """Well-behaved ones at a time [1]."""
    rude_rate: float = 100.0
    """Rude ones [1/s]."""
    trouble: float = 2.0
    """How long each trouble lasts, and each peace between two [s]."""
    sample: float = 0.5
    """Between two samples [s]."""
    seed: int = 1


@dataclass(frozen=True)
class Report:
    """What happened."""

    ends: Ends
    left: Counter[str]
    troubles: Counter[str]
    watch: Watch
    before: Sample
    """Ready, and nobody there."""
    after: Sample
    """The same, when all was over."""
    said: str
    """The end of the log of the program, which says only what is wrong."""

    def wrongs(self) -> list[str]:
        """Say what must not be: violations, and what is left when nobody is there any more."""
        wrongs = list(self.ends.violations)
        if self.ends.open:
            wrongs.append(f"{self.ends.open} requests have no end")
        for name in ("busy_slots", "waiting", "in_flight", "slots_leaked", "ledger_difference"):
            if left := getattr(self.after, name):
                wrongs.append(f"{name} is {left:g} when nobody is there, wanted 0")
        for name, more in (("descriptors", 12), ("tasks", 12), ("threads", 8)):
            was, left = getattr(self.before, name), getattr(self.after, name)
            if left > was + more:
                wrongs.append(f"{name} were {was:g} at first and are {left:g} when nobody is there")
        if self.said:
            wrongs.append(f"the program logged errors:\n{self.said}")
        return wrongs


async def run(soak: Soak, tell: Callable[[float, Ends, Watch], None] = lambda *_: None) -> Report:
    """Do it; `tell` how it goes, every second: elapsed [s], ends, samples.

    Raises
    ------
    ProgramFailed
        If the program does not start, or ends.
    """
    rng = random.Random(soak.seed)
    with tempfile.TemporaryDirectory(prefix="autoscaler-soak-") as name:
        folder = Path(name)
        tasks = folder / "tasks"
        tasks.write_text("nan")
        async with Servers(rng) as servers:
            configuration = _configuration(folder, servers.urls)
            arguments = ("-m", "load.soak.program", str(folder / "autoscaler.yaml"), str(tasks))
            async with Program(configuration, folder, ROOT, arguments) as program:
                async with asyncio.timeout(_READY_WITHIN):
                    await program.ready()
                watch = Watch(program.pid, program.admin, tasks)
                report = await _under_load(soak, program, servers, watch, rng, tell)
            return replace(report, said=program.log_tail())


async def _under_load(
    soak: Soak,
    program: Program,
    servers: Servers,
    watch: Watch,
    rng: random.Random,
    tell: Callable[[float, Ends, Watch], None],
) -> Report:
    ends = Ends()
    polite = Clients(program.url, ends, rng)
    rude = RudeClients(int(program.url.rpartition(":")[2]), rng)
    async with aiohttp.ClientSession(program.admin) as session:
        await asyncio.sleep(2.0)  # every server is found, the file of tasks is there
        before = await watch.look(session)
        async with beside(watch.run(soak.sample)), asyncio.TaskGroup() as group:
            group.create_task(polite.run(soak.clients))
            group.create_task(rude.run(soak.rude_rate))
            async with beside(servers.trouble(soak.trouble)):
                began = time.monotonic()
                while (elapsed := time.monotonic() - began) < soak.seconds:
                    tell(elapsed, ends, watch)
                    await asyncio.sleep(min(1.0, soak.seconds - elapsed))
            polite.stopped = rude.stopped = True
        after = await _when_silent(watch, session)
    return Report(ends, rude.left, servers.troubles, watch, before, after, "")


async def _when_silent(watch: Watch, session: aiohttp.ClientSession) -> Sample:
    """Look when nothing is in flight and idle connections are closed, or when it should long have been so."""
    until = time.monotonic() + _SILENT_WITHIN
    while time.monotonic() < until:
        sample = await watch.look(session)
        if not (sample.busy_slots or sample.waiting or sample.in_flight):
            break
        await asyncio.sleep(0.2)
    await asyncio.sleep(_IDLE_CONNECTIONS_CLOSE)
    return await watch.look(session)


def _configuration(folder: Path, urls: list[str]) -> dict[str, Any]:
    listen, admin = free_address(), free_address()
    return {
        "listen": listen,
        "admin": admin,
        "history": str(folder / "history.db"),
        "control_interval": "1s",
        "http": {"body_timeout": "5s", "head_timeout": "5s", "send_timeout": "10s", "linger": "0.2s"},
        "pools": {
            "soak": {
                "slots_per_replica": SLOTS_PER_SERVER,
                "queue": {"wait_max": "10s"},
                "timeouts": {"first_byte": "5s", "idle": "5s"},
                "platform": {"kind": "static", "urls": urls, "probe_interval": "1s"},
            }
        },
    }
