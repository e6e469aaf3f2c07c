"""Several pools of language models behind one listener, each before a scripted server."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.model_servers.openai import ListedModel
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.known_models import KnownModels
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.proxy.tenants.gate import TenantGate
from tests.fakes.client import Answer, Client
from tests.fakes.front import Facts
from tests.fakes.upstream import Upstream


@dataclass
class ModelPool:
    """A pool; `lists` is what its servers list, and may change."""

    name: str
    server: Upstream
    named: Sequence[str] = ()
    lists: list[str] | None = None
    prefix: str = "/v1"
    is_openai: bool = True
    asked: int = 0
    broadcast: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)

    async def listed(self, url: str) -> list[ListedModel] | None:
        self.asked += 1
        if self.lists is None:
            return None
        return [ListedModel(name, None, json.dumps({"id": name, "x": 1}).encode()) for name in self.lists]


class Models:
    def __init__(self, server: ProxyServer) -> None:
        self.server = server

    async def ask(
        self, target: str, body: dict[str, Any] | bytes | None, *fields: str, method: str = "POST"
    ) -> Answer:
        client = await Client.connect(self.server.port)
        try:
            raw = json.dumps(body).encode() if isinstance(body, dict) else body
            client.ask(target, raw, *fields, method=method)
            async with asyncio.timeout(10):
                return await client.answer(method)
        finally:
            client.close()

    async def chat(self, model: str, *fields: str) -> Answer:
        return await self.ask(
            "/v1/chat/completions", {"messages": [{"content": "hi"}], "model": model}, *fields
        )

    async def get(self, target: str = "/v1/models", *fields: str) -> Answer:
        return await self.ask(target, None, *fields, method="GET")


@asynccontextmanager
async def models_front(
    *pools: ModelPool, gate: TenantGate | None = None, options: ProxyOptions | None = None, looks: bool = True
) -> AsyncIterator[Models]:
    """A running proxy before `pools`, whose servers are ready and have said what they list."""
    clock, routes = SystemClock(), []
    for pool in pools:
        drive = PoolDrive(
            pool.name, Dispatcher(QueueOptions(clock_stops_max=0.0), DispatchOptions()), clock, [pool.facts]
        )
        drive.replica_ready(pool.server.replica(slots=4))
        urls = [f"http://{pool.name}"]
        known = (
            KnownModels(pool.named, pool.listed, lambda urls=urls: urls, clock) if pool.is_openai else None
        )
        if known is not None and looks:
            await known.look()
        routes.append(PoolRoute(drive, RouteOptions(prefix=pool.prefix, broadcast=pool.broadcast), known))
    server = ProxyServer(options or ProxyOptions(port=0, linger=0.1), routes, clock, gate)
    await server.start()
    try:
        yield Models(server)
        for pool in pools:
            pool.facts.check_all_has_ended()
    finally:
        await server.stop()
