"""Two controllers of one cluster, led by a Lease: processes of their own at an API server that is strict."""

import asyncio
import re
import signal
import time
from contextlib import AsyncExitStack, suppress

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources, admin_application
from autoscaler.domain import Observation
from autoscaler.telemetry.demand.recent import PoolNow, PoolSource, RecentDemand
from autoscaler.telemetry.status import Status
from tests.fakes.command_process import CommandProcess
from tests.fakes.kubernetes_api import FakeCluster

SERVICE, SLOTS, DOORS = 0.5, 4, 2
LEADS_WITHIN = 15.0


class Demand:
    """What the doors tell: so many requests a second come to each."""

    def __init__(self):
        self.rate = 2

    def observe(self, now: float, wall_time: float) -> Observation:
        busy, square = self.rate * SERVICE, SERVICE**2
        return Observation(
            1.0, self.rate, self.rate, busy, self.rate * square, busy, round(busy), 0, 0.0, wall_time
        )

    def door(self) -> tuple[RecentDemand, web.Application]:
        source = PoolSource(self.observe, lambda: PoolNow(1, SLOTS, 0))
        recent = RecentDemand({"chat": source}, SystemClock(), list, lambda: False)
        status = Status("0", 0.0, 0.0, 0.0, ())
        sources = AdminSources(
            status=lambda: status,
            decisions=lambda pool, limit: [],
            not_ready=list,
            metrics=lambda accept: (b"", "text/plain"),
            observations=recent.report,
        )
        return recent, admin_application(sources)


class World:
    """A cluster whose pods start and end at once, doors, and the controllers."""

    def __init__(self, folder, cluster: FakeCluster, demand: Demand, doors: list[str]):
        self.cluster, self.demand = cluster, demand
        self._folder, self._doors = folder, doors
        self._kubeconfig = str(cluster.kubeconfig(folder))
        self.controllers: dict[str, CommandProcess] = {}
        self.sizes = [cluster.replicas]
        """That were asked for, one after the other."""

    async def run_pods(self) -> None:
        while True:
            self.cluster.run()
            self.cluster.end_terminating()
            if self.cluster.replicas != self.sizes[-1]:
                self.sizes.append(self.cluster.replicas)
            await asyncio.sleep(0.02)

    async def two(self) -> tuple[CommandProcess, CommandProcess]:
        """Start two; return the one that leads, and the other."""
        for name in ("one", "other"):
            self.controllers[name] = self._controller(name)
        await asyncio.gather(*(each.ready() for each in self.controllers.values()))
        return await self.until_led()

    async def until_led(self, within: float = LEADS_WITHIN) -> tuple[CommandProcess, CommandProcess]:
        """Wait until one leads; return it, and the other."""
        async with asyncio.timeout(within):
            while True:
                for each, other in (pair := list(self.controllers.values()), pair[::-1]):
                    if await leads(each):
                        return each, other
                await asyncio.sleep(0.05)

    async def until(self, condition, within: float = 25.0) -> None:
        async with asyncio.timeout(within):
            while not condition():
                await asyncio.sleep(0.05)

    def _controller(self, name: str) -> CommandProcess:
        pool = {
            "slots_per_replica": SLOTS,
            "objective": {"wait": "1s", "quantile": 0.9},
            "scaling": {"replicas_min": 2, "replicas_max": 12, "scale_down_hold": "3s"},
            "demand": {"kind": "list", "urls": self._doors, "interval": "500ms", "carry": "5s"},
            "platform": {
                "kind": "kubernetes",
                "name": "chat",
                "service": "chat",
                "kubeconfig": self._kubeconfig,
                "cold_start_initial": "1s",
            },
        }
        lease = {"lease": "autoscaler-chat", "kubeconfig": self._kubeconfig}
        return CommandProcess(
            self._folder, "controller", name, control_interval="1s", leadership=lease, pools={"chat": pool}
        ).launch()


async def leads(controller: CommandProcess) -> bool:
    with suppress(aiohttp.ClientError, OSError):
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{controller.admin_url}/metrics") as answer,
        ):
            return re.search(r"^autoscaler_leads 1", await answer.text(), re.MULTILINE) is not None
    return False


async def healthy(request: web.Request) -> web.Response:
    return web.Response()


@pytest.fixture
async def world(tmp_path):
    async with AsyncExitStack() as undo:
        pod = web.Application()
        pod.router.add_get("/healthz", healthy)
        server = await undo.enter_async_context(TestServer(pod, host="127.0.0.1"))
        cluster = FakeCluster(2, port=server.port)
        cluster.run()
        await undo.enter_async_context(cluster)
        demand, urls = Demand(), []
        for _ in range(DOORS):
            recent, application = demand.door()
            door = await undo.enter_async_context(TestServer(application, host="127.0.0.1"))
            urls.append(f"http://127.0.0.1:{door.port}")
            undo.callback(asyncio.create_task(recent.run()).cancel)
        world = World(tmp_path, cluster, demand, urls)
        undo.callback(asyncio.create_task(world.run_pods()).cancel)
        yield world
        for each in world.controllers.values():
            each.sweep()


async def test_a_leader_that_dies_at_the_peak_is_replaced_by_its_lease_and_the_fleet_stays(world):
    first, second = await world.two()
    assert world.cluster.replicas == 2
    world.demand.rate = 12  # of two doors, 12 erlangs: at least 4 replicas of 4 slots
    await world.until(lambda: world.cluster.replicas >= 4)
    await asyncio.sleep(2.0)
    before = world.cluster.replicas

    await first.end(signal.SIGKILL)
    killed_at = time.monotonic()
    leader, _ = await world.until_led(within=LEADS_WITHIN)
    assert leader is second
    assert time.monotonic() - killed_at > 5.0  # not before the lease has run out
    assert world.cluster.replicas >= min(before, 4)
    assert min(world.sizes[world.sizes.index(before) :]) >= 4, world.sizes

    world.demand.rate = 24  # the other goes on scaling
    await world.until(lambda: world.cluster.replicas >= 7)

    first.launch()
    await first.ready()
    asked = len(world.sizes)
    assert await second.end() == 0  # in order: the lease is given up
    leader, _ = await world.until_led(within=5.0)
    assert leader is first
    await asyncio.sleep(2.5)
    assert all(size >= 7 for size in world.sizes[asked:])
    world.demand.rate = 2
    await world.until(lambda: world.cluster.replicas <= 3)
    assert await first.end() == 0


async def test_while_the_api_server_is_away_nobody_leads_and_afterwards_the_fleet_catches_up(world):
    first, second = await world.two()
    world.demand.rate = 12
    await world.until(lambda: world.sizes[-1] >= 4)

    world.cluster.away = "hang"  # it takes connections and answers nothing
    world.cluster.break_watches()
    await world.until(lambda: world.sizes[-1] == world.cluster.replicas)
    before, sizes = world.cluster.replicas, len(world.sizes)
    world.demand.rate = 24  # 24 erlangs, and nobody can act on it
    async with asyncio.timeout(LEADS_WITHIN):
        while await leads(first) or await leads(second):
            await asyncio.sleep(0.1)
    await asyncio.sleep(2.0)
    assert world.cluster.replicas == before and len(world.sizes) == sizes
    assert not await leads(first) and not await leads(second)

    world.cluster.away = None
    await world.until_led()
    await world.until(lambda: world.sizes[-1] >= 7)
    assert min(world.sizes[sizes - 1 :]) >= before
    assert [await each.end() for each in (first, second)] == [0, 0]
