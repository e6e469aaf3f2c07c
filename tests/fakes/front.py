"""The whole request path, on a port of its own, before scripted servers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.domain import DropReason, Outcome, Request, TokenUse
from autoscaler.ports import Replica
from autoscaler.proxy.batch.batching import Batching
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.proxy.tenants.gate import TenantGate
from tests.fakes.client import Answer, Client


class Facts:
    """A `RequestListener` that remembers, and knows what must never happen."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[DropReason] = Counter()
        self.service_times: list[float] = []
        self.uses: list[TokenUse] = []
        self.alive: dict[str, str] = {}

    def arrived(self, request: Request, now: float) -> None:
        assert request.id not in self.alive
        self.alive[request.id] = "waits"
        self.told.append(("arrived", request.id))

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        assert self.alive[request.id] == "waits"
        self.alive[request.id] = "runs"
        self.told.append(("started", request.id))

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        assert service_time >= 0
        self.service_times.append(service_time)
        self.told.append(("slot_freed", ""))

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        assert self.alive[request.id] == "runs"
        self.alive[request.id] = "waits"
        self.told.append(("returned", request.id))

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        state = self.alive.pop(request.id)
        assert reason is None or state == "waits"
        self.outcomes[outcome] += 1
        if reason is not None:
            self.reasons[reason] += 1
        self.told.append(("ended", request.id))

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        assert now >= use.started_at
        self.uses.append(use)

    def check_all_has_ended(self) -> None:
        assert self.alive == {}
        told = Counter(fact for fact, _ in self.told)
        assert told["arrived"] == told["ended"]
        assert told["started"] == told["slot_freed"] + told["returned"]
        assert told["slot_freed"] == len(self.service_times)


class Front:
    def __init__(self, server: ProxyServer, drive: PoolDrive, facts: Facts) -> None:
        self.server = server
        self.drive = drive
        self.facts = facts

    @property
    def port(self) -> int:
        return self.server.port

    async def client(self, receive_buffer: int | None = None) -> Client:
        return await Client.connect(self.port, receive_buffer)

    async def ask(
        self, target: str = "/v1/x", body: bytes | None = b"{}", *fields: str, method: str = "POST"
    ) -> Answer:
        client = await self.client()
        try:
            client.ask(target, body, *fields, method=method)
            return await client.answer(method)
        finally:
            client.close()

    async def until(self, **wanted: int) -> None:
        """Wait until the ledger says so: `waiting=…`, `busy=…`."""
        async with asyncio.timeout(10):
            while any(getattr(self.drive.snapshot(), name) != value for name, value in wanted.items()):
                await asyncio.sleep(0.002)

    async def check_nothing_is_left(self) -> None:
        """Everything is free again, everybody was told, nothing had to be mended."""
        await self.until(waiting=0, busy=0)
        async with asyncio.timeout(10):
            while self.server.in_flight:
                await asyncio.sleep(0.002)
        self.facts.check_all_has_ended()
        assert self.drive.reconcile() == 0
        assert self.drive.snapshot().slots_leaked == 0


@asynccontextmanager
async def front(
    *replicas: Replica,
    options: ProxyOptions | None = None,
    route: RouteOptions | None = None,
    queue: QueueOptions | None = None,
    gate: TenantGate | None = None,
    dispatch: DispatchOptions | None = None,
    batching: Batching | None = None,
) -> AsyncIterator[Front]:
    """A running proxy with one pool of `replicas`, all ready; checked for leaks at the end."""
    clock, facts = SystemClock(), Facts()
    dispatcher = Dispatcher(queue or QueueOptions(clock_stops_max=0.0), dispatch or DispatchOptions())
    drive = PoolDrive("pool", dispatcher, clock, [facts], batching)
    server = ProxyServer(
        options or ProxyOptions(port=0, linger=0.1),
        [PoolRoute(drive, route or RouteOptions(), batching=batching)],
        clock,
        gate,
    )
    await server.start()
    for replica in replicas:
        drive.replica_ready(replica)
    this = Front(server, drive, facts)
    try:
        yield this
        await this.check_nothing_is_left()
    finally:
        await server.stop()
        if batching is not None:
            await batching.close()
