"""The sidecar: the data plane beside one server. It queues, dispatches, measures, and decides nothing.

What came in the last minutes is told on the admin listener, second by second, to whoever decides
(`telemetry.demand`). It keeps no history and fits no model, so it stays small: nothing that is imported from
here may need numpy, scipy or pandas.

Stop, on SIGTERM, Ctrl-C or the end of the terminal: say not ready and leaving, let what is in flight end,
exit. That is the order in which a pod ends. A second signal does not wait.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from signal import Signals
from typing import TYPE_CHECKING

import structlog
import uvloop

from autoscaler import __version__
from autoscaler.app.admin_listener import open_admin
from autoscaler.app.sidecar_options import SidecarOptions
from autoscaler.app.sidecar_pool import DoorPool
from autoscaler.app.stopping import (
    StopSignals,
    all_at_once,
    drain_unless_told_again,
    stop_signals,
    work_until_told,
)
from autoscaler.app.tenants_elsewhere import follow_tenants
from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.sharing.routes import shares_routes
from autoscaler.telemetry.demand.counters import demand_counters
from autoscaler.telemetry.demand.recent import RecentDemand
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.live_request import LiveRequest
from autoscaler.telemetry.loop_lag import LoopLag
from autoscaler.telemetry.status import Status
from autoscaler.tls import ClientTls

if TYPE_CHECKING:
    from autoscaler.proxy.grpc.server import GrpcServer

log = structlog.get_logger(__name__)


def run(options: SidecarOptions) -> None:
    """Run until SIGTERM or Ctrl-C, and drain. Raises UsageError if a port is taken."""
    uvloop.run(_Sidecar(options).run())


class _Sidecar:
    """Everything that lives from start to stop."""

    def __init__(self, options: SidecarOptions) -> None:
        self._options = options
        self._clock = SystemClock()
        self._started_at = self._clock.now()
        self._metrics = Metrics(tuple(pool.name for pool in options.pools), self._status)
        self._pools = [DoorPool(pool, self._metrics, self._clock) for pool in options.pools]
        self._demand = RecentDemand(
            {pool.name: pool.demand for pool in self._pools},
            self._clock,
            self._not_ready,
            lambda: self._leaving,
        )
        self._lag: LoopLag | None = None
        self._proxy: ProxyServer | None = None
        self._grpc: GrpcServer | None = None
        self._leaving = False

    async def run(self) -> None:
        """Start everything, serve until told to stop, stop everything."""
        stop = stop_signals()
        async with AsyncExitStack() as undo:
            self._lag = LoopLag(asyncio.get_running_loop())
            self._lag.start()
            undo.callback(self._lag.stop)
            gate = TenantGate(self._options.tenants, self._options.book, self._clock)
            self._metrics.show(gate.counts.collect)
            self._metrics.show(lambda: demand_counters(self._demand.totals))
            await self._start_data(undo, gate)
            if (path := self._options.tenants.keys_file) is not None:
                names = [pool.name for pool in self._pools]
                follows = follow_tenants(path, names, gate, self._options.book_seen)
                following = asyncio.create_task(follows, name="tenants")
                undo.callback(following.cancel)
            await self._start_admin(undo)
            await self._serve(undo, stop)

    async def _start_data(self, undo: AsyncExitStack, gate: TenantGate) -> None:
        """Listen for requests; for gRPC, too, if a pool speaks it."""
        options = self._options
        routes = [
            PoolRoute(pool.drive, pool.options.route, pool.models, pool.batching) for pool in self._pools
        ]
        self._proxy = ProxyServer(options.proxy, routes, self._clock, gate, self._grpc_calls)
        await self._proxy.start()
        undo.push_async_callback(self._proxy.stop)
        if not any(pool.options.speaks_grpc for pool in self._pools):
            return
        from autoscaler.proxy.grpc.routes import GrpcRoute  # noqa: PLC0415 - large, and needed here only
        from autoscaler.proxy.grpc.server import GrpcServer  # noqa: PLC0415 - large, and needed here only

        grpc_routes = [
            GrpcRoute(
                pool.drive,
                pool.options.route,
                pool.options.model,
                (pool.options.route.tls or ClientTls()) if pool.options.grpc_tls else None,
                pool.batching,
            )
            for pool in self._pools
            if pool.options.speaks_grpc
        ]
        self._grpc = GrpcServer(options.grpc, grpc_routes, self._clock, gate, self._proxy.access_log)
        await self._grpc.start()
        undo.push_async_callback(self._grpc.stop)

    async def _start_admin(self, undo: AsyncExitStack) -> None:
        options = self._options
        sources = AdminSources(
            status=self._status,
            decisions=lambda pool, limit: [],
            not_ready=self._not_ready,
            metrics=self._metrics.render,
            requests=self._live,
            observations=self._demand.report,
            more=shares_routes({pool.name: pool.told for pool in self._pools if pool.told is not None}),
        )
        await open_admin(undo, options.admin, sources, options.admin_token_file, options.admin_tls)
        data = f"{options.proxy.host}:{self._proxy.port if self._proxy else options.proxy.port}"
        log.info("listening", data=data, admin=str(options.admin), incarnation=self._demand.incarnation)

    async def _serve(self, undo: AsyncExitStack, stop: StopSignals) -> None:
        for pool in self._pools:
            undo.push_async_callback(pool.stop)
        await work_until_told(self._work(), stop, lambda told: self._leave(told, stop))
        log.info("drained")

    async def _leave(self, told: Signals, stop: StopSignals) -> None:
        """Say so to whoever asks, and drain."""
        self._leaving = True
        log.info("draining; a second signal ends it at once", signal=told.name)
        await drain_unless_told_again([self], stop)

    async def drain(self) -> None:
        """Let what is in flight end, and those who read the demand hear that no more will come."""
        await asyncio.gather(*(each.drain() for each in (self._proxy, self._grpc) if each))
        await self._demand.last_word()

    async def _work(self) -> None:
        """Watch the servers, and count; for ever."""
        async with all_at_once() as group:
            group.create_task(self._demand.run(), name="demand")
            for pool in self._pools:
                group.create_task(pool.start(), name=f"servers of {pool.name}")
                if pool.models is not None:
                    group.create_task(pool.models.run(), name=f"models of {pool.name}")

    def _grpc_calls(self, pool: str) -> Counter[str]:
        """Count the calls over gRPC to the servers of a pool, by replica id."""
        return Counter() if self._grpc is None else self._grpc.live_calls(pool)

    def _live(self) -> list[LiveRequest]:
        """Say where every request of both listeners stands, the oldest first."""
        live = [each for listener in (self._proxy, self._grpc) if listener for each in listener.live()]
        return sorted(live, key=lambda each: -each.age)

    def _not_ready(self) -> list[str]:
        """Why requests are not welcome now."""
        if self._leaving or self._proxy is None or not self._proxy.ready:
            return ["draining"]
        return [pool.not_ready for pool in self._pools if pool.not_ready]

    def _status(self) -> Status:
        now = self._clock.now()
        return Status(
            version=__version__,
            wall_time=self._clock.wall_time(),
            uptime=now - self._started_at,
            event_loop_lag=0.0 if self._lag is None else self._lag.seconds,
            pools=tuple(pool.status() for pool in self._pools),
        )
