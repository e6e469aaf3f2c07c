"""On the wire: when a replica counts, by probes through the port that serves, and what it is given first."""

import asyncio
from contextlib import asynccontextmanager

from autoscaler.dispatch import DispatchOptions
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.health import HealthOptions, HealthState
from autoscaler.domain import Outcome
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.platforms.static import Static, StaticOptions
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing


class Model:
    """Answers probes as it is told to; serves, unless it is told not to, and remembers how many at a time."""

    def __init__(self) -> None:
        self.ready = True
        self.serve = says()
        self.at_a_time: list[int] = []
        self._serving = 0

    async def __call__(self, wire: UpstreamWire, request: Received) -> None:
        if request.head.target == "/healthz":
            status = "200 OK" if self.ready else "503 Service Unavailable"
            await says(status=status)(wire, request)
            return
        self._serving += 1
        self.at_a_time.append(self._serving)
        try:
            await asyncio.sleep(0.002)
            await self.serve(wire, request)
        finally:
            self._serving -= 1


@asynccontextmanager
async def watched(proxy: Front, *servers: Upstream, slots: int = 1, failures: int = 3):
    """The platform that watches servers which somebody else runs, reporting to the proxy."""
    urls = tuple(f"http://127.0.0.1:{server.port}" for server in servers)
    options = StaticOptions(urls, slots, probe_interval=0.02, probe_failures=failures)
    asked = PlainHttp("/healthz", 1.0)
    platform = Static(options, asked)
    await platform.start(proxy.drive)
    try:
        yield platform
    finally:
        await platform.stop()
        await asked.close()


async def probes(server: Upstream, count: int) -> None:
    """Wait until so many more probes have been answered."""
    wanted = sum(request.head.target == "/healthz" for request in server.requests) + count
    async with asyncio.timeout(10):
        while sum(request.head.target == "/healthz" for request in server.requests) < wanted:
            await asyncio.sleep(0.005)


async def test_k5_a_hundred_that_wait_for_the_first_replica_get_no_502_and_do_not_fall_upon_it():
    """It gets nothing before it says that it is ready, though it listens; and then a little at first."""
    model = Model()
    model.ready = False
    dispatch = DispatchOptions(concurrency=ConcurrencyOptions(slow_start=0.4))
    async with Upstream(model) as server, front(dispatch=dispatch) as proxy, watched(proxy, server, slots=8):
        sent = [asyncio.create_task(proxy.ask()) for _ in range(100)]
        await proxy.until(waiting=100)
        await probes(server, 3)
        assert model.at_a_time == []
        model.ready = True
        assert {(await answer).status for answer in sent} == {200}
        assert max(model.at_a_time[:5]) == 1
        assert max(model.at_a_time) <= 8


async def test_k6_one_probe_that_fails_changes_nothing_and_what_runs_goes_on():
    model = Model()
    async with Upstream(model) as server, front() as proxy, watched(proxy, server) as platform:
        gate = asyncio.Event()

        async def serve(wire: UpstreamWire, request: Received) -> None:
            await gate.wait()
            await says()(wire, request)

        model.serve = serve
        running = asyncio.create_task(proxy.ask())
        await proxy.until(busy=1)
        model.ready = False
        await probes(server, 1)
        model.ready = True
        await probes(server, 2)
        assert (await platform.fleet()).ready == 1
        assert proxy.drive.snapshot().slots == 1
        gate.set()
        assert (await running).status == 200


async def test_k6_a_replica_that_stays_unready_gets_nothing_new_and_finishes_what_it_has():
    model, other = Model(), Model()
    async with (
        Upstream(model) as server,
        Upstream(other) as second,
        front() as proxy,
        watched(proxy, server, second, failures=2),
    ):
        gate = asyncio.Event()

        async def serve(wire: UpstreamWire, request: Received) -> None:
            await gate.wait()
            await says(b"first")(wire, request)

        model.serve = serve
        other.serve = says(b"second")
        running = [asyncio.create_task(proxy.ask()) for _ in range(2)]
        await proxy.until(busy=1)
        model.ready = False
        await proxy.until(slots=1)
        assert (await proxy.ask()).body == b"second"
        gate.set()
        assert sorted([(await answer).body for answer in running]) == [b"first", b"second"]


async def test_t7_probes_that_fail_eject_a_replica_before_its_platform_gives_it_up():
    """And one of two that is ejected is tried again when they succeed, not before."""
    model, other = Model(), Model()
    dispatch = DispatchOptions(health=HealthOptions(probe_failures_max=2, ejection=0.05))
    async with (
        Upstream(model) as server,
        Upstream(other) as second,
        front(dispatch=dispatch) as proxy,
        watched(proxy, server, second, failures=1000),
    ):
        health = proxy.drive._dispatcher.health
        first_id = f"http://127.0.0.1:{server.port}"
        model.ready = False
        async with asyncio.timeout(10):
            while health()[first_id] is not HealthState.EJECTED:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.15)  # long past its ejection
        assert health()[first_id] is HealthState.EJECTED
        served = len(model.at_a_time)
        assert {(await proxy.ask()).status for _ in range(4)} == {200}
        assert len(model.at_a_time) == served
        model.ready = True
        async with asyncio.timeout(10):
            while health()[first_id] is not HealthState.WELL:
                assert (await proxy.ask()).status == 200
                await asyncio.sleep(0.005)


async def test_t7_answering_probes_does_not_make_up_for_calls_that_fail():
    model, other = Model(), Model()
    model.serve = says(b"dead inside", status="500 Internal Server Error")
    async with (
        Upstream(model) as server,
        Upstream(other) as second,
        front() as proxy,
        watched(proxy, server, second),
    ):
        statuses = [(await proxy.ask()).status for _ in range(20)]
        assert statuses.count(500) == 3
        await probes(server, 3)
        assert (await proxy.ask()).status == 200


async def test_a_probe_takes_no_slot_and_is_no_request():
    model = Model()
    model.serve = says_nothing
    async with Upstream(model) as server, front() as proxy, watched(proxy, server):
        client = await proxy.client()
        client.ask()
        await proxy.until(busy=1)
        await probes(server, 3)
        client.close()
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}
