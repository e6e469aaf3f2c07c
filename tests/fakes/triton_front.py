"""Both listeners in the process of the test, before real Triton servers, with one ledger."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.ports import Replica
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.grpc.routes import GrpcRoute
from autoscaler.proxy.grpc.server import GrpcServer
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.proxy.tenants.gate import open_gate
from tests.fakes.front import Facts
from tests.fakes.triton_server import TritonServer


@dataclass
class TritonFront:
    drive: PoolDrive
    proxy: ProxyServer
    grpc: GrpcServer
    facts: Facts

    async def check_nothing_is_left(self) -> None:
        """Everything is free again, and the ledger is what is on the wire."""
        async with asyncio.timeout(10):
            while self.drive.snapshot().waiting or self.drive.snapshot().busy:
                await asyncio.sleep(0.005)
            while self.proxy.in_flight or self.grpc.in_flight:
                await asyncio.sleep(0.005)
        self.facts.check_all_has_ended()
        self.proxy.reconcile()
        snapshot = self.drive.snapshot()
        assert (snapshot.slots_leaked, snapshot.ledger_difference) == (0, 0)


@asynccontextmanager
async def triton_front(*servers: TritonServer, slots: int = 4) -> AsyncIterator[TritonFront]:
    """A running proxy whose replicas are `servers`; checked for leaks at the end."""
    clock, facts = SystemClock(), Facts()
    drive = PoolDrive(
        "pool", Dispatcher(QueueOptions(clock_stops_max=0.0), DispatchOptions()), clock, [facts]
    )
    gate, route = open_gate(clock), RouteOptions()
    grpc = GrpcServer(GrpcOptions(port=0), [GrpcRoute(drive, route)], clock, gate)
    options = ProxyOptions(port=0, linger=0.1)
    proxy = ProxyServer(options, [PoolRoute(drive, route)], clock, gate, grpc.live_calls)
    await proxy.start()
    await grpc.start()
    for server in servers:
        drive.replica_ready(Replica(f"t{server.port}", server.url, slots, server.target))
    front = TritonFront(drive, proxy, grpc, facts)
    try:
        yield front
        await front.check_nothing_is_left()
    finally:
        await grpc.stop()
        await proxy.stop()
