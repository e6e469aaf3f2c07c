"""The standalone program: proxy, controllers and admin listener in one process, from start to last byte.

Start: the history is locked and the ports are taken before any replica is started, so that a second
instance or a taken port ends at once and leaves nothing behind. Stop, on SIGTERM, Ctrl-C or the end of the
terminal: say not ready, let what is in flight end, then end the replicas. A second signal does not wait.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from signal import Signals

import structlog
import uvloop

from autoscaler.app.admin_listener import open_admin
from autoscaler.app.keda_listener import start_keda
from autoscaler.app.pool import Pool
from autoscaler.app.standing_in import substitution_metrics
from autoscaler.app.status import program_status
from autoscaler.app.stopping import (
    StopSignals,
    all_at_once,
    drain_unless_told_again,
    stop_signals,
    work_until_told,
)
from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources
from autoscaler.fit_process import FitProcesses
from autoscaler.platforms.local_process import LocalProcesses
from autoscaler.proxy.access_log import AccessLog
from autoscaler.proxy.grpc.routes import GrpcRoute
from autoscaler.proxy.grpc.server import GrpcServer
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.settings import Settings, load_tenants
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.gpu_metrics import gpu_metrics
from autoscaler.telemetry.gpu_watch import GpuWatch
from autoscaler.telemetry.history import History
from autoscaler.telemetry.ledger_watch import ledger_metrics
from autoscaler.telemetry.live_request import LiveRequest
from autoscaler.telemetry.loop_lag import LoopLag
from autoscaler.telemetry.signal_metrics import signal_metrics
from autoscaler.telemetry.status import Status
from autoscaler.tls import ClientTls
from autoscaler.watched_files import WatchedFiles

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
        self._gpus = GpuWatch(self._clock)
        self._pools: list[Pool] = []
        self._proxy: ProxyServer | None = None
        self._grpc: GrpcServer | None = None

    async def run(self) -> None:
        """Start everything, serve until told to stop, stop everything."""
        stop = stop_signals()
        async with AsyncExitStack() as undo:
            history = History(self._settings.history)
            undo.push_async_callback(asyncio.to_thread, history.close)
            lag = LoopLag(asyncio.get_running_loop())
            lag.start()
            undo.callback(lag.stop)
            metrics = Metrics(tuple(self._settings.pools), lambda: self._status(lag))
            self._gpus.start()
            undo.callback(self._gpus.stop)
            metrics.show(lambda: gpu_metrics(self._gpus.readings))
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
        by_name = {pool.name: pool for pool in self._pools}
        for pool in self._pools:
            if pool.settings.substitute is not None:
                pool.substitute_by(by_name[pool.settings.substitute])
        if pairs := [pool.standing_in for pool in self._pools if pool.standing_in is not None]:
            metrics.show(lambda: substitution_metrics(pairs))
        routes = [
            PoolRoute(pool.drive, pool.settings.route, pool.models, pool.batching) for pool in self._pools
        ]
        gate, tenant_files = self._gate()
        metrics.show(gate.counts.collect)
        if tested := [pool for pool in self._pools if pool.settings.signals]:
            metrics.show(lambda: signal_metrics({pool.name: pool.signals.signals for pool in tested}))
            metrics.show(lambda: ledger_metrics({pool.name: pool.ledger.findings for pool in tested}))
        self._proxy = ProxyServer(settings.proxy, routes, self._clock, gate, self._grpc_calls)
        await self._proxy.start()
        undo.push_async_callback(self._proxy.stop)
        await self._start_grpc(undo, gate, self._proxy.access_log)
        await start_keda(undo, settings.keda, {pool.name: pool.platform for pool in self._pools})
        sources = AdminSources(
            status=lambda: self._status(lag),
            decisions=lambda pool, limit: history.decisions(pool, limit=limit),
            not_ready=self._not_ready,
            metrics=metrics.render,
            requests=self._live,
        )
        access = settings.admin_access
        files = [tenant_files]
        await open_admin(undo, settings.admin, sources, access.token_file, access.tls, files)
        log.info("listening", data=f"{settings.proxy.host}:{self._proxy.port}", admin=str(settings.admin))

    async def _start_grpc(self, undo: AsyncExitStack, gate: TenantGate, access_log: AccessLog | None) -> None:
        """Listen for gRPC if a pool speaks it."""
        routes = [
            GrpcRoute(
                pool.drive,
                pool.settings.route,
                pool.settings.server.model,
                (pool.settings.route.tls or ClientTls()) if pool.settings.grpc_tls else None,
                pool.batching,
            )
            for pool in self._pools
            if pool.settings.speaks_grpc
        ]
        if not routes:
            return
        self._grpc = GrpcServer(self._settings.grpc, routes, self._clock, gate, access_log)
        await self._grpc.start()
        undo.push_async_callback(self._grpc.stop)
        log.info("listening for gRPC", data=f"{self._settings.grpc.host}:{self._grpc.port}")

    def _gate(self) -> tuple[TenantGate, WatchedFiles]:
        """Return the gate, and the file of tenants that it follows."""
        options, pools = self._settings.tenants, frozenset(self._settings.pools)
        if (path := options.keys_file) is None:
            return TenantGate(options, TenantBook(), self._clock), WatchedFiles((), lambda: None)
        gate = TenantGate(options, load_tenants(path, pools), self._clock)
        return gate, WatchedFiles([path], lambda: gate.replace(load_tenants(path, pools)))

    async def _serve(self, undo: AsyncExitStack, stop: StopSignals) -> None:
        for pool in self._pools:
            undo.push_async_callback(pool.stop)
        await work_until_told(self._start_pools_and_control(), stop, lambda told: self._drain(told, stop))
        ours = any(isinstance(pool.platform, LocalProcesses) for pool in self._pools)
        log.info("drained; ending the replicas" if ours else "drained; the fleet stays as it is")

    async def _drain(self, told: Signals, stop: StopSignals) -> None:
        log.info("draining; a second signal ends it at once", signal=told.name)
        await drain_unless_told_again([each for each in (self._proxy, self._grpc) if each], stop)

    async def _start_pools_and_control(self) -> None:
        async with all_at_once() as group:
            for pool in self._pools:
                group.create_task(_start_and_control(pool), name=f"pool {pool.name}")
                group.create_task(pool.troubles.run(), name=f"troubles of {pool.name}")
                if pool.models is not None:
                    group.create_task(pool.models.run(), name=f"models of {pool.name}")
                if pool.settings.signals:
                    group.create_task(pool.signals.run(), name=f"signals of {pool.name}")

    def _grpc_calls(self, pool: str) -> Counter[str]:
        """Count the calls over gRPC to the replicas of a pool, by replica id."""
        return Counter() if self._grpc is None else self._grpc.live_calls(pool)

    def _live(self) -> list[LiveRequest]:
        """Say where every request of both listeners stands, the oldest first."""
        live = [each for listener in (self._proxy, self._grpc) if listener for each in listener.live()]
        return sorted(live, key=lambda each: -each.age)

    def _not_ready(self) -> list[str]:
        """Why requests are not welcome now."""
        reasons = []
        if self._proxy is None or not self._proxy.ready:
            reasons.append("draining")
        return reasons + [pool.not_ready for pool in self._pools if pool.not_ready]

    def _status(self, lag: LoopLag) -> Status:
        return program_status(
            self._pools,
            self._clock.now(),
            self._clock.wall_time(),
            self._started_at,
            lag.seconds,
            self._gpus.readings,
        )


async def _start_and_control(pool: Pool) -> None:
    await pool.start()
    await pool.control.run()
