"""What befalls the fleet, when, and what came of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from load.demo.program import ProgramFailed
from load.trial.controllers import Controller, leader_of
from load.trial.fleet import Fleet
from load.trial.plan import Trial
from load.trial.prometheus import Prometheus

TAKEOVER_MAX = 15.0
"""Another leads within [s]."""
_COMES_BACK_WITHIN = 30.0  # [s]


@dataclass(frozen=True, slots=True)
class Trouble:
    """One that happened."""

    name: str
    began: float
    """[s, from the first request]"""
    ended: float
    """When all was as before, as far as it can be [s]."""
    takeover: float | None = None
    """Until another controller led [s]; None if none had to."""


class Troubles:
    """Does what the plan says, and writes down when.

    Attributes
    ----------
    happened : list of Trouble
        Those that are over.
    now : str
        What goes on; empty if nothing does.
    """

    def __init__(
        self, trial: Trial, fleet: Fleet, controllers: tuple[Controller, ...], prometheus: Prometheus | None
    ) -> None:
        self._trial, self._fleet, self._controllers = trial, fleet, controllers
        self._prometheus = prometheus
        self._started_at = time.monotonic()
        self.happened: list[Trouble] = []
        self.now = ""

    def elapsed(self) -> float:
        """Time since the start [s]."""
        return time.monotonic() - self._started_at

    async def run(self) -> None:
        """Let everything happen at its time."""
        self._started_at = time.monotonic()
        for share, trouble in self._plan():
            await asyncio.sleep(share * self._trial.seconds - self.elapsed())
            await trouble()
        self.now = ""

    def _plan(self) -> list[tuple[float, Callable[[], Awaitable[None]]]]:
        """When, as a share of the whole: at the peak, as the load falls, and when it has fallen."""
        plan = [(0.36, self.leader_killed), (0.43, self.sidecar_killed), (0.93, self.leader_ended)]
        if (prometheus := self._prometheus) is not None:
            plan.append((0.50, lambda: self.prometheus_stopped(prometheus)))
            plan += [(share, lambda: self.prometheus_away(prometheus)) for share in (0.55, 0.72)]
        return sorted(plan, key=lambda each: each[0])

    async def leader_killed(self) -> None:
        """Kill the controller that leads; it comes back once another leads, as a cluster has it."""
        await self._without_leader("leader killed", Controller.kill)

    async def leader_ended(self) -> None:
        """End it in order."""
        await self._without_leader("leader ended", Controller.end)

    async def _without_leader(self, name: str, end: Callable[[Controller], Awaitable[None]]) -> None:
        self.now = name
        leader = await leader_of(self._controllers)
        began = self.elapsed()
        await end(leader)
        async with _within(2 * TAKEOVER_MAX, f"{leader.name} has ended, and nobody leads"):
            await leader_of(self._controllers)
        self._over(name, began, takeover=self.elapsed() - began)
        await leader.start()

    async def sidecar_killed(self) -> None:
        """Kill the sidecar of one that takes requests; the fleet starts it anew."""
        self.now, began = (name := "sidecar killed"), self.elapsed()
        pair = self._fleet.ready[0]
        await pair.sidecar.kill()
        pair.is_ready = False
        async with _within(_COMES_BACK_WITHIN, f"{pair.sidecar.name} was killed, and does not come back"):
            while not pair.is_ready:  # noqa: ASYNC110 - the fleet looks
                await asyncio.sleep(0.1)
        self._over(name, began)

    async def prometheus_stopped(self, prometheus: Prometheus) -> None:
        """Stop Prometheus for longer than a scrape, and less than it is believed."""
        self.now, began = (name := "Prometheus stopped"), self.elapsed()
        prometheus.stop()
        await asyncio.sleep(0.7 * self._trial.carry)
        prometheus.go_on()
        self._over(name, began)

    async def prometheus_away(self, prometheus: Prometheus) -> None:
        """Kill Prometheus for longer than it is believed; it comes back with what it had on disk."""
        self.now, began = (name := "Prometheus away"), self.elapsed()
        await prometheus.kill()
        await asyncio.sleep(self._trial.away)
        await prometheus.start()
        async with _within(_COMES_BACK_WITHIN, "Prometheus was started anew, and does not scrape"):
            await prometheus.until_it_scrapes(len(self._fleet.ready))
        self._over(name, began)

    def _over(self, name: str, began: float, takeover: float | None = None) -> None:
        self.happened.append(Trouble(name, began, self.elapsed(), takeover))
        self.now = ""


@asynccontextmanager
async def _within(seconds: float, failing: str) -> AsyncIterator[None]:
    """Raise ProgramFailed if what is inside takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ProgramFailed(f"{failing} after {seconds:g} s") from None
