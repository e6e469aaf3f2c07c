"""What the process under test holds, sampled while it works."""

import asyncio
import json
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import psutil
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """One look."""

    time: float
    """[s, monotonic]"""
    memory: float
    """Resident [MiB]."""
    descriptors: float
    threads: float
    tasks: float
    busy_slots: float
    waiting: float
    in_flight: float
    """Requests whose answer has not ended."""
    slots_leaked: float
    ledger_difference: float


class Watch:
    """Looks at the process `pid`, its admin listener and its file of tasks."""

    def __init__(self, pid: int, admin: str, tasks: Path) -> None:
        self._process = psutil.Process(pid)
        self._admin = admin
        self._tasks = tasks
        self.samples: list[Sample] = []

    async def run(self, interval: float) -> None:
        """Take a sample every `interval` [s], until cancelled."""
        async with aiohttp.ClientSession(self._admin) as session:
            while True:
                self.samples.append(await self.look(session))
                await asyncio.sleep(interval)

    async def look(self, session: aiohttp.ClientSession) -> Sample:
        """Take one sample."""
        status = await _json(session, "/api/status")
        requests = await _json(session, "/api/requests?limit=1000")
        pool = status["pools"][0]
        with self._process.oneshot():
            memory = self._process.memory_info().rss / 2**20
            threads = self._process.num_threads()
        return Sample(
            time=time.monotonic(),
            memory=memory,
            descriptors=self._process.num_fds(),
            threads=threads,
            tasks=float(self._tasks.read_text() or "nan"),
            busy_slots=pool["slots"]["busy"],
            waiting=pool["queue_depth"],
            in_flight=len(requests["requests"]),
            slots_leaked=pool["slots_leaked"],
            ledger_difference=pool["ledger_difference"],
        )

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return all samples by name, each of shape (n,)."""
        table = np.array([astuple(sample) for sample in self.samples])
        return {field.name: table[:, at] for at, field in enumerate(fields(Sample))}


async def _json(session: aiohttp.ClientSession, path: str) -> Any:
    async with session.get(path) as answer:
        return json.loads(await answer.read())
