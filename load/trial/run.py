"""One trial: everything started, load and troubles, everything ended, and what became of it all."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoscaler.telemetry.history_reader import HistoryReader
from load.demo.program import ProgramFailed
from load.demo.run import beside
from load.generator import Generator, Outgoing
from load.trial.controllers import Controller, leader_of
from load.trial.fleet import POOL, Asked, Fleet
from load.trial.plan import Trial
from load.trial.prometheus import Prometheus
from load.trial.report import Decided, Report
from load.trial.troubles import Troubles
from load.trial.watch import Watch

NAMES = ("one", "other")
_READY_WITHIN = 90.0  # [s]
_TRIES_MAX = 8
"""A request whose sidecar dies is sent to another, as a balancer does; so often at most [1]."""
_DECISIONS_MAX = 100_000


@dataclass(frozen=True)
class Parts:
    """Everything that runs."""

    fleet: Fleet
    controllers: tuple[Controller, ...]
    prometheus: Prometheus | None
    troubles: Troubles


@asynccontextmanager
async def started(trial: Trial, folder: Path) -> AsyncIterator[Parts]:
    """Start everything and wait until it is ready; all is gone outside.

    Raises
    ------
    ProgramFailed
        If something does not get ready.
    """
    async with AsyncExitStack() as stack:
        prometheus = None
        if trial.through_prometheus:
            prometheus = await stack.enter_async_context(Prometheus(folder / "prometheus", trial.scrape))
        listed = (lambda addresses: None) if prometheus is None else prometheus.scrape
        fleet = await stack.enter_async_context(Fleet(trial, folder, listed))
        url = None if prometheus is None else prometheus.url
        controllers = tuple(Controller(name, trial, folder, url, fleet) for name in NAMES)
        try:
            async with asyncio.timeout(_READY_WITHIN):
                for each in controllers:
                    await stack.enter_async_context(each)
                await asyncio.gather(*(each.ready() for each in controllers))
                await leader_of(controllers)
                await fleet.until_ready(trial.replicas_min)
        except TimeoutError:
            asked = [*(pair.sidecar for pair in fleet.pairs), *controllers]
            said = "\n".join(each.log_tail() for each in asked)
            raise ProgramFailed(f"not ready after {_READY_WITHIN:g} s; the logs end:\n{said}") from None
        yield Parts(fleet, controllers, prometheus, Troubles(trial, fleet, controllers, prometheus))


async def run(trial: Trial, tell: Callable[[float, str], None] = lambda elapsed, how: None) -> Report:
    """Do it; `tell` how it goes, every second: time since the first request [s], and a line.

    Raises
    ------
    ProgramFailed
        If something does not start, or nobody takes over.
    """
    with tempfile.TemporaryDirectory(prefix="autoscaler-trial-") as name:
        folder = Path(name)
        async with started(trial, folder) as parts:
            fleet, troubles = parts.fleet, parts.troubles
            generator = Generator(
                lambda index: Outgoing(f"{fleet.door()}/v1", body=b"?"), tries_max=_TRIES_MAX
            )
            watch = Watch(fleet, parts.controllers, troubles)
            began, wall_time = time.monotonic(), time.time()
            async with beside(watch.run()):
                await _all_of(
                    (troubles.run(), generator.run(trial.arrivals())),
                    lambda: tell(troubles.elapsed(), f"{fleet!r} {troubles.now}"),
                )
        decided = tuple(_decided(each.history, wall_time, each.asks_as) for each in parts.controllers)
    asked = [Asked(each.time - began, each.by, each.desired) for each in fleet.asked]
    return Report(
        trial, generator.records, watch.looks, asked, troubles.happened, dict(decided), fleet.restarts
    )


async def _all_of(works: Iterable[Coroutine[Any, Any, Any]], tell: Callable[[], None]) -> None:
    """Run all until they are done, or one fails: raise what it raised. `tell` every second."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        while pending := [task for task in tasks if not task.done()]:
            tell()
            done, _ = await asyncio.wait(pending, timeout=1.0, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _decided(history: Path, wall_time: float, name: str) -> tuple[str, list[Decided]]:
    """Read what a controller decided since `wall_time`."""
    with HistoryReader(history) as reader:
        records = reader.decisions(POOL, _DECISIONS_MAX)
    since = [
        Decided(each.wall_time - wall_time, each.decision) for each in records if each.wall_time >= wall_time
    ]
    return name, sorted(since, key=lambda each: each.time)
