"""The standalone program: proxy, controllers and admin listener in one process, from start to last byte.

Start: the history is locked and the ports are taken before any replica is started, so that a second
instance or a taken port ends at once and leaves nothing behind. Stop, on SIGTERM, Ctrl-C or the end of the
terminal: say not ready, let what is in flight end, then end the replicas. A second signal does not wait.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import structlog
import uvloop

from autoscaler.app.pool import Pool
from autoscaler.app.status import program_status
from autoscaler.app.stopping import StopSignals, drain_unless_told_again, stop_signals
from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources, start_admin
from autoscaler.dashboard.admin_token import AdminToken
from autoscaler.fit_process import FitProcesses
from autoscaler.platforms.keda import Keda, KedaServer
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
from autoscaler.tls import ClientTls, server_context, watch
from autoscaler.watched_files import WatchedFiles, look_now_and_then

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
        await self._start_keda(undo)
        sources = AdminSources(
            status=lambda: self._status(lag),
            decisions=lambda pool, limit: history.decisions(pool, limit=limit),
            not_ready=self._not_ready,
            metrics=metrics.render,
            requests=self._live,
        )
        access = settings.admin_access
        token = None if access.token_file is None else AdminToken(access.token_file)
        context = None if access.tls is None else server_context(access.tls)
        admin = await start_admin(settings.admin.host, settings.admin.port, sources, token, context)
        undo.push_async_callback(admin.cleanup)
        looking = asyncio.create_task(look_now_and_then([tenant_files, watch(access.tls, context)]))
        undo.callback(looking.cancel)
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

    async def _start_keda(self, undo: AsyncExitStack) -> None:
        """Listen for KEDA if it scales a pool."""
        pools = {pool.name: pool.platform for pool in self._pools if isinstance(pool.platform, Keda)}
        if pools:
            server = KedaServer(self._settings.keda, pools)
            await server.start()
            undo.push_async_callback(server.stop)
            log.info("listening for KEDA", at=f"{self._settings.keda.host}:{server.port}")

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
        working = asyncio.create_task(self._start_pools_and_control())
        stopping = asyncio.create_task(stop.get())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            log.info("draining; a second signal ends it at once", signal=stopping.result().name)
            await drain_unless_told_again([each for each in (self._proxy, self._grpc) if each], stop)
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
                    if pool.models is not None:
                        group.create_task(pool.models.run(), name=f"models of {pool.name}")
                    if pool.settings.signals:
                        group.create_task(pool.signals.run(), name=f"signals of {pool.name}")
        except ExceptionGroup as group_error:
            raise group_error.exceptions[0] from group_error

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
