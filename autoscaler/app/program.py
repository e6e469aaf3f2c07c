"""The standalone program: proxy, controllers and admin listener in one process, from start to last byte.

Start: the history is locked and the ports are taken before any replica is started, so that a second
instance or a taken port ends at once and leaves nothing behind. Stop, on SIGTERM, Ctrl-C or the end of the
terminal: say not ready, let what is in flight end, then end the replicas. A second signal does not wait.
"""

import asyncio
import signal
from contextlib import AsyncExitStack

import structlog
import uvloop

from autoscaler.app.pool import Pool
from autoscaler.app.status import program_status
from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources, start_admin
from autoscaler.fit_process import FitProcesses
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.settings import Settings
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.loop_lag import LoopLag
from autoscaler.telemetry.status import Status

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Run until SIGTERM or Ctrl-C, and drain.

    Raises
    ------
    UsageError
        If a port is taken, or the history is in use or unusable; nothing has been started then.
    """
    uvloop.run(_Program(settings).run())


class _Program:
    """Everything that lives from start to stop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._started_at = self._clock.now()
        self._pools: list[Pool] = []
        self._proxy: ProxyServer | None = None

    async def run(self) -> None:
        """Start everything, serve until told to stop, stop everything."""
        stop = _stop_signals()
        async with AsyncExitStack() as undo:
            history = History(self._settings.history)
            undo.push_async_callback(asyncio.to_thread, history.close)
            lag = LoopLag(asyncio.get_running_loop())
            lag.start()
            undo.callback(lag.stop)
            metrics = Metrics(tuple(self._settings.pools), lambda: self._status(lag))
            await self._start_listeners(undo, history, metrics, lag)
            await self._serve(undo, stop)

    async def _start_listeners(
        self, undo: AsyncExitStack, history: History, metrics: Metrics, lag: LoopLag
    ) -> None:
        settings = self._settings
        fits = FitProcesses()
        self._pools = [
            Pool(pool, settings.control, history, metrics, self._clock, fits)
            for pool in settings.pools.values()
        ]
        routes = [PoolRoute(pool.drive, pool.settings.route) for pool in self._pools]
        self._proxy = ProxyServer(settings.proxy, routes, self._clock)
        await self._proxy.start()
        undo.push_async_callback(self._proxy.stop)
        sources = AdminSources(
            status=lambda: self._status(lag),
            decisions=lambda pool, limit: history.decisions(pool, limit=limit),
            not_ready=self._not_ready,
            metrics=metrics.render,
        )
        admin = await start_admin(settings.admin.host, settings.admin.port, sources)
        undo.push_async_callback(admin.cleanup)
        log.info("listening", data=f"{settings.proxy.host}:{self._proxy.port}", admin=str(settings.admin))

    async def _serve(self, undo: AsyncExitStack, stop: "asyncio.Queue[signal.Signals]") -> None:
        for pool in self._pools:
            undo.push_async_callback(pool.stop)
        working = asyncio.create_task(self._start_pools_and_control())
        stopping = asyncio.create_task(stop.get())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            log.info("draining; a second signal ends it at once", signal=stopping.result().name)
            await self._drain_unless_told_again(stop)
        working.cancel()
        stopping.cancel()
        ended, _ = await asyncio.gather(working, stopping, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        log.info("drained; ending the replicas")

    async def _start_pools_and_control(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for pool in self._pools:
                    group.create_task(_start_and_control(pool), name=f"pool {pool.name}")
        except ExceptionGroup as group_error:
            raise group_error.exceptions[0] from group_error

    async def _drain_unless_told_again(self, stop: "asyncio.Queue[signal.Signals]") -> None:
        if self._proxy is None:
            return
        draining = asyncio.create_task(self._proxy.drain())
        again = asyncio.create_task(stop.get())
        await asyncio.wait([draining, again], return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, again):
            task.cancel()
        await asyncio.gather(draining, again, return_exceptions=True)

    def _not_ready(self) -> list[str]:
        """Why requests are not welcome now."""
        reasons = []
        if self._proxy is None or not self._proxy.ready:
            reasons.append("draining")
        return reasons + [pool.not_ready for pool in self._pools if pool.not_ready]

    def _status(self, lag: LoopLag) -> Status:
        return program_status(
            self._pools, self._clock.now(), self._clock.wall_time(), self._started_at, lag.seconds
        )


async def _start_and_control(pool: Pool) -> None:
    await pool.start()
    await pool.control.run()


def _stop_signals() -> "asyncio.Queue[signal.Signals]":
    """Return a queue that every signal to end goes into from now on."""
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(each, signals.put_nowait, each)
    return signals
