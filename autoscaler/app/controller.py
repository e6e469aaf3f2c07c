"""The controller: the control plane alone, for pools whose requests go through sidecars, or other doors.

It reads what came to each door, merges it to one observation of each pool an interval, and decides as the
standalone program does. Several of them may look after the same pools: all observe and decide, and only the
one that leads tells the platform. When it goes another takes its place, which knows all that it knew but for
its open orders, and orders what is lacking by what it has wanted all along.

Stop, on SIGTERM, Ctrl-C or the end of the terminal: tell the platforms nothing more, then give up the lead,
and exit. The fleet stays as it is.
"""

import asyncio
from contextlib import AsyncExitStack

import structlog
import uvloop

from autoscaler import __version__
from autoscaler.app.admin_listener import open_admin
from autoscaler.app.controller_status import controller_metrics, watched_status
from autoscaler.app.keda_listener import start_keda
from autoscaler.app.stopping import StopSignals, all_at_once, stop_signals, work_until_told
from autoscaler.app.watched_pool import WatchedPool
from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources
from autoscaler.fit_process import FitProcesses
from autoscaler.leadership import Alone, FileLeadership
from autoscaler.platforms.kubernetes import LeaseLeadership, LeaseOptions
from autoscaler.ports import Clock, Leadership
from autoscaler.settings import Settings
from autoscaler.settings.schema_leadership import LeadershipOptions, LockOptions
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.loop_lag import LoopLag
from autoscaler.telemetry.status import Status

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Run until SIGTERM or Ctrl-C.

    Raises
    ------
    UsageError
        If a port is taken, or the history is in use or unusable.
    """
    uvloop.run(_ControllerProgram(settings).run())


class _ControllerProgram:
    """Everything that lives from start to stop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._started_at = self._clock.now()
        self._leadership = make_leadership(settings.leadership, self._clock)
        self._pools: list[WatchedPool] = []
        self._lag: LoopLag | None = None

    async def run(self) -> None:
        """Start everything, decide until told to stop, stop everything."""
        stop = stop_signals()
        async with AsyncExitStack() as undo:
            history = History(self._settings.history)
            undo.push_async_callback(asyncio.to_thread, history.close)
            self._lag = LoopLag(asyncio.get_running_loop())
            self._lag.start()
            undo.callback(self._lag.stop)
            metrics = Metrics(tuple(self._settings.pools), self._status)
            fits = FitProcesses()
            self._pools = [
                WatchedPool(
                    pool, self._settings.control, history, metrics, self._clock, fits, self._leadership
                )
                for pool in self._settings.pools.values()
            ]
            metrics.show(lambda: controller_metrics(self._pools, self._leadership))
            await start_keda(undo, self._settings.keda, {pool.name: pool.platform for pool in self._pools})
            await self._start_admin(undo, history, metrics)
            await self._decide(undo, stop)

    async def _start_admin(self, undo: AsyncExitStack, history: History, metrics: Metrics) -> None:
        settings, access = self._settings, self._settings.admin_access
        sources = AdminSources(
            status=self._status,
            decisions=lambda pool, limit: history.decisions(pool, limit=limit),
            not_ready=lambda: [pool.not_ready for pool in self._pools if pool.not_ready],
            metrics=metrics.render,
        )
        await open_admin(undo, settings.admin, sources, access.token_file, access.tls)
        log.info("listening", admin=str(settings.admin))

    async def _decide(self, undo: AsyncExitStack, stop: StopSignals) -> None:
        leading = asyncio.create_task(self._leadership.run(), name="leadership")
        undo.push_async_callback(_given_up, leading)  # after all that tells a platform anything has ended
        for pool in self._pools:
            undo.push_async_callback(pool.stop)
        await work_until_told(self._work(leading), stop)
        log.info("ended; the fleet stays as it is")

    async def _work(self, leading: asyncio.Task[None]) -> None:
        """Read and decide, for ever, or until `leading` fails."""
        async with all_at_once() as group:
            group.create_task(_goes_on(leading), name="whether the lead is sought")
            for pool in self._pools:
                group.create_task(pool.source.run(), name=f"demand of {pool.name}")
                group.create_task(pool.run(), name=f"pool {pool.name}")
                group.create_task(pool.troubles.run(), name=f"troubles of {pool.name}")
                if pool.teller is not None:
                    group.create_task(pool.teller.run(), name=f"shares of {pool.name}")

    def _status(self) -> Status:
        return Status(
            version=__version__,
            wall_time=self._clock.wall_time(),
            uptime=self._clock.now() - self._started_at,
            event_loop_lag=0.0 if self._lag is None else self._lag.seconds,
            pools=tuple(watched_status(pool, self._clock.now()) for pool in self._pools),
        )


async def _goes_on(leading: asyncio.Task[None]) -> None:
    """Raise what it raises; who is cancelled here leaves it alone."""
    await asyncio.shield(leading)


async def _given_up(leading: asyncio.Task[None]) -> None:
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)


def make_leadership(options: LeadershipOptions, clock: Clock) -> Leadership:
    """Make what says which of several controllers acts."""
    match options:
        case LockOptions():
            return FileLeadership(options.path)
        case LeaseOptions():
            return LeaseLeadership(options, clock)
        case None:
            return Alone()
