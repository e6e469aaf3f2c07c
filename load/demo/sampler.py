"""Looks at the running program four times a second, by its admin listener, and keeps what it saw."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from autoscaler.telemetry.plain import decode
from autoscaler.telemetry.status import PoolStatus, Status

INTERVAL = 0.25  # [s]


@dataclass(frozen=True, slots=True)
class Sample:
    """What the program said of its pool, `time` [s] after the recording began."""

    time: float
    pool: PoolStatus

    @property
    def replicas(self) -> int:
        """Replicas that cost something: whatever their state [1]."""
        return self.pool.replicas.ready + self.pool.replicas.starting + self.pool.replicas.draining

    @property
    def slots(self) -> int:
        """Slots of ready replicas [1]."""
        return self.pool.slots.total

    @property
    def busy(self) -> int:
        """Those of them in use [1]."""
        return self.pool.slots.total - self.pool.slots.free


class Sampler:
    """Samples `/api/status` at the base URL `admin` until it is cancelled.

    Attributes
    ----------
    samples : list of Sample
        Since `start_recording`.
    """

    def __init__(self, admin: str) -> None:
        self.samples: list[Sample] = []
        self._url = f"{admin}/api/status"
        self._looked = asyncio.Condition()
        self._last: PoolStatus | None = None
        self._recording_since: float | None = None

    def start_recording(self) -> None:
        """Keep samples from now on; now is their time 0."""
        self._recording_since = time.monotonic()

    async def run(self) -> None:
        """Look and keep; a look that fails is left out."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2.0)) as session:
            while True:
                due = time.monotonic() + INTERVAL
                try:
                    async with session.get(self._url) as answer:
                        await self._take(decode(await answer.read(), Status).pools[0])
                except (aiohttp.ClientError, OSError, ValueError):
                    pass  # not up yet, or ending: `Program.ended` tells
                await asyncio.sleep(due - time.monotonic())

    async def until(self, true: Callable[[PoolStatus], bool]) -> None:
        """Wait until `true` of the pool, as last seen."""
        async with self._looked:
            await self._looked.wait_for(lambda: self._last is not None and true(self._last))

    async def _take(self, pool: PoolStatus) -> None:
        self._last = pool
        if self._recording_since is not None:
            self.samples.append(Sample(time.monotonic() - self._recording_since, pool))
        async with self._looked:
            self._looked.notify_all()
