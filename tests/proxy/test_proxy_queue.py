"""On the wire: waiting, and being told why not."""

import asyncio

import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.domain import DropReason, Outcome
from autoscaler.errors import PortTaken, UsageError
from autoscaler.proxy import connection
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from tests.fakes.client import Client
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing


async def test_s5_a_burst_is_spread_evenly_at_dispatch():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says()(wire, request)

    gate = asyncio.Event()
    async with Upstream(script) as a, Upstream(script) as b, Upstream(script) as c, Upstream(script) as d:
        models = (a, b, c, d)
        async with front(*(model.replica(slots=8) for model in models)) as proxy:
            asked = [asyncio.create_task(proxy.ask()) for _ in range(32)]
            await proxy.until(busy=32)
            for model in models:
                await model.got(8)
            gate.set()
            assert {(await answer).status for answer in asked} == {200}
    assert [len(model.requests) for model in models] == [8] * 4


async def test_first_come_first_served_one_at_a_time():
    async def script(wire: UpstreamWire, request: Received) -> None:
        served.append(request.head.target)
        assert model.running == 1
        await says()(wire, request)

    served: list[str] = []
    async with Upstream(script) as model, front() as proxy:
        asked = []
        for n in range(10):
            asked.append(asyncio.create_task(proxy.ask(f"/{n}")))
            await proxy.until(waiting=n + 1)
        proxy.drive.replica_ready(model.replica())
        await asyncio.gather(*asked)
    assert served == [f"/{n}" for n in range(10)]


async def test_k2_p16_who_waits_for_the_first_replica_is_served_by_it_and_the_next_ones():
    async with Upstream(says_nothing) as slow, Upstream() as model, front() as proxy:
        asked = [asyncio.create_task(proxy.ask()) for _ in range(20)]
        await proxy.until(waiting=20)
        proxy.drive.replica_ready(slow.replica())
        await proxy.until(waiting=19)
        proxy.drive.replica_ready(model.replica(slots=2))
        await proxy.until(waiting=0, busy=1)
        assert sum(answer.done() and answer.result().status == 200 for answer in asked) >= 18
        slow.wires[0].reset()
        answers = await asyncio.gather(*asked)
    assert sorted(answer.status for answer in answers) == [200] * 19 + [502]


async def test_e6_a_full_queue_is_429_with_an_honest_retry_after():
    queue = QueueOptions(requests_max=1)
    async with Upstream(says_nothing) as model, front(model.replica(), queue=queue) as proxy:
        holder, waiter = await proxy.client(), await proxy.client()
        holder.ask()
        await proxy.until(busy=1)
        waiter.ask()
        await proxy.until(waiting=1)
        answer = await proxy.ask("/v1/x")
        assert (answer.status, answer.json["error"]["type"]) == (429, "rate_limit_error")
        assert int(answer.head.get("Retry-After") or 0) >= 1
        assert answer.head.get("X-Request-Executed") == "no"
        assert proxy.facts.reasons == {DropReason.QUEUE_FULL: 1}
        waiter.close()
        holder.close()


async def test_e7_bodies_that_wait_are_bounded_in_bytes():
    queue = QueueOptions(requests_max=100, bytes_max=25_000)
    async with Upstream(says_nothing) as model, front(model.replica(), queue=queue) as proxy:
        clients = [await proxy.client() for _ in range(3)]
        for client in clients:
            client.ask("/v1/x", bytes(10_000))
        await proxy.until(busy=1, waiting=2)
        answer = await proxy.ask("/v1/x", bytes(10_000))
        assert (answer.status, answer.json["error"]["code"]) == (429, "queue_bytes_full")
        for client in clients:
            client.close()


@pytest.mark.parametrize("replicas, status, code", [(0, 503, "no_capacity"), (1, 504, "deadline_passed")])
async def test_e6_a22_a_wait_that_is_over_is_told_and_never_dispatched(replicas, status, code):
    route = RouteOptions(wait_timeout=0.1)
    async with Upstream(says_nothing) as model, front(*[model.replica()] * replicas, route=route) as proxy:
        holder = await proxy.client()
        if replicas:
            holder.ask()
            await model.got(1)
        answer = await proxy.ask("/v1/x")
        assert (answer.status, answer.json["error"]["code"]) == (status, code)
        assert (answer.head.get("Retry-After") is not None) == (status == 503)
        assert answer.head.get("X-Request-Executed") == "no"
        assert proxy.facts.outcomes == {Outcome.EXPIRED: 1}
        holder.close()
    assert len(model.requests) == replicas


async def test_server_timing_tells_the_wait_apart_from_the_service():
    async with Upstream() as model, front() as proxy:
        asked = asyncio.create_task(proxy.ask())
        await proxy.until(waiting=1)
        await asyncio.sleep(0.1)
        proxy.drive.replica_ready(model.replica())
        story = (await asked).head.get("Server-Timing") or ""
        timing = dict(entry.strip().split(";dur=") for entry in story.split(","))
    assert float(timing["queue"]) >= 99
    assert 0 <= float(timing["service"]) < float(timing["queue"]) + 1000


async def test_each_path_goes_to_the_pool_with_the_longest_prefix():
    clock = SystemClock()
    async with Upstream(says(b"all")) as all_, Upstream(says(b"v1")) as v1, Upstream(says(b"chat")) as chat:
        pools = []
        for model, prefix in ((all_, "/"), (chat, "/v1/chat"), (v1, "/v1")):
            drive = PoolDrive(prefix, Dispatcher(QueueOptions()), clock)
            drive.replica_ready(model.replica())
            pools.append(PoolRoute(drive, RouteOptions(prefix=prefix)))
        server = ProxyServer(ProxyOptions(port=0), pools, clock)
        await server.start()
        client = await Client.connect(server.port)
        expected = {"/v1/chat/x": b"chat", "/v1/chatter": b"v1", "/v1": b"v1", "/v2?/v1": b"all"}
        for path, pool in expected.items():
            client.ask(path)
            assert (await client.answer()).body == pool
        client.close()
        await server.stop()
        with pytest.raises(ValueError, match="prefix"):
            ProxyServer(ProxyOptions(port=0), [pools[0], pools[0]], clock)


async def test_a_port_that_is_taken_is_named_with_the_remedy():
    async with front() as proxy:
        second = ProxyServer(ProxyOptions(port=proxy.port), [], SystemClock())
        with pytest.raises(PortTaken, match=f"port {proxy.port} .* set another `listen`"):
            await second.start()
        assert not second.ready
        await second.stop()


async def test_an_address_that_is_not_ours_is_named():
    server = ProxyServer(ProxyOptions(host="203.0.113.1", port=0), [], SystemClock())
    with pytest.raises(UsageError, match=r"203\.0\.113\.1"):
        await server.start()


async def test_without_the_strict_parser_it_does_not_start(monkeypatch):
    monkeypatch.setattr(connection, "HttpRequestParser", connection.HttpRequestParserPy)
    with pytest.raises(UsageError, match="C extensions"):
        await ProxyServer(ProxyOptions(port=0), [], SystemClock()).start()
