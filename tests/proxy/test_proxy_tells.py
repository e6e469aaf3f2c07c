"""On the wire: what answers and the admin listener tell of requests while they are under way."""

import asyncio

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.telemetry.exposition import Metrics
from tests.fakes.front import Facts, Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing
from tests.telemetry.status_examples import a_pool, a_status


async def test_who_asks_where_it_stands_is_told_while_it_waits_and_at_the_end():
    async def script(wire: UpstreamWire, request: Received) -> None:
        if request.head.target == "/v1/long":
            await gate.wait()
        await says()(wire, request)

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        await proxy.ask()  # so that a service time is known
        long, waits, asks = [await proxy.client() for _ in range(3)]
        long.ask("/v1/long", b"{}")
        await model.got(2)
        waits.ask("/v1/x", b"{}")
        await proxy.until(waiting=1)
        asks.ask("/v1/x", b"{}", "X-Want-Queue-Info: 1")
        told = await asks.head()
        assert told.status == 102
        assert told.get("X-Queue-Position") == "1"
        assert float(told.get("X-Estimated-Start") or "") > 0
        gate.set()
        answer = await asks.answer()
        assert (answer.status, answer.head.get("X-Queue-Position")) == (200, "1")
        assert answer.head.get("X-Estimated-Start") == told.get("X-Estimated-Start")
        for client in (long, waits):
            answer = await client.answer()
            assert (answer.status, answer.head.get("X-Queue-Position")) == (200, None)
        for client in (long, waits, asks):
            client.close()
    assert all(request.head.get("X-Want-Queue-Info") is None for request in model.requests)


async def test_who_does_not_wait_is_told_nothing_of_a_queue():
    async with Upstream() as model, front(model.replica()) as proxy:
        answer = await proxy.ask("/v1/x", b"{}", "X-Want-Queue-Info: 1")
        assert (answer.status, answer.head.get("X-Queue-Position")) == (200, None)


async def test_the_live_table_says_where_each_request_stands():
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        reads, calls, waits = [await proxy.client() for _ in range(3)]
        calls.ask("/v1/chat/completions?key=secret", b"{}", "X-Request-Id: one")
        await model.got(1)
        waits.ask("/v2/models/m/infer", b"{}")
        await proxy.until(waiting=1)
        reads.send(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
        async with asyncio.timeout(5):
            while len(table := proxy.server.live()) < 3:
                await asyncio.sleep(0.002)
        assert [(live.path, live.state) for live in table] == [
            ("/v1/chat/completions", "calling"),
            ("/v2/models/m/infer", "waiting"),
            ("/v1/x", "reading"),
        ]
        first = table[0]
        assert (first.id, first.pool, first.replica) == ("one", "pool", model.replica().id)
        assert first.priority_class == "standard"
        assert first.age >= table[1].age >= table[2].age >= 0
        for client in (reads, calls, waits):
            client.close()
    assert proxy.server.live() == []


async def test_a_call_without_a_slot_and_a_slot_without_a_call_are_found():
    """What the ledger says is compared with what is on the wire; both faults are made here by hand."""
    async with Upstream(says_nothing) as model, front(model.replica(slots=2)) as proxy:
        client = await proxy.client()
        client.ask()
        await model.got(1)
        proxy.server.reconcile()
        assert proxy.drive.snapshot().ledger_difference == 0
        (use,) = proxy.drive._uses.values()
        proxy.drive.give_up(use.grant)  # the slot is free, and the call goes on
        proxy.server.reconcile()
        assert proxy.drive.snapshot().ledger_difference == 1
        client.close()
        await proxy.until(busy=0)
        await model.wires[0].wait_closed()
        async with asyncio.timeout(5):
            while proxy.server.in_flight:
                await asyncio.sleep(0.002)
        proxy.server.reconcile()
        assert proxy.drive.snapshot().ledger_difference == 0


async def test_the_calls_of_another_listener_are_compared_with_the_ledger_too():
    async with Upstream(says_nothing) as model:
        elsewhere = {"pool": {model.replica().id: 1}}
        clock, facts = SystemClock(), Facts()
        drive = PoolDrive("pool", Dispatcher(QueueOptions()), clock, [facts])
        server = ProxyServer(
            ProxyOptions(port=0),
            [PoolRoute(drive, RouteOptions())],
            clock,
            None,
            lambda pool: elsewhere[pool],
        )
        await server.start()
        proxy = Front(server, drive, facts)
        drive.replica_ready(model.replica(slots=2))
        client = await proxy.client()
        client.ask()
        await model.got(1)
        server.reconcile()
        assert drive.snapshot().ledger_difference == 1  # two calls on the wire, one slot in use
        elsewhere["pool"] = {}
        server.reconcile()
        assert drive.snapshot().ledger_difference == 0
        client.close()
        await proxy.until(busy=0)
        await server.stop()


async def test_s12_l6_r8_e5_p15_no_path_model_or_client_makes_a_series_of_its_own():
    metrics, clock = Metrics(("pool",), lambda: a_status(a_pool(name="pool"))), SystemClock()
    drive = PoolDrive("pool", Dispatcher(QueueOptions()), clock, [metrics.for_pool("pool")])
    server = ProxyServer(ProxyOptions(port=0), [PoolRoute(drive, RouteOptions(prefix="/v1"))], clock)
    await server.start()
    async with Upstream() as model:
        drive.replica_ready(model.replica(slots=4))
        proxy = Front(server, drive, Facts())
        series = []
        for n in range(40):
            await proxy.ask(f"/v1/random-{n}", b'{"model": "junk-%d", "user": "u%d"}' % (n, n))
            await proxy.ask(f"/other-{n}", b"{}", f"X-Request-Id: id-{n}", method=["GET", "PUT"][n % 2])
            series.append(len(metrics.render()[0].splitlines()))
        assert len(set(series)) == 1
    await server.stop()
