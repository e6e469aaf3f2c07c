"""On the wire: what the ledger says stays true through time-outs, restarts, scale events and removals."""

import asyncio
import random

from autoscaler.domain import Outcome
from autoscaler.ports import Replica
from autoscaler.proxy.options import ProxyOptions
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing


async def takes_a_moment(wire: UpstreamWire, request: Received) -> None:
    await asyncio.sleep(0.01)
    await says()(wire, request)


async def test_s7_r2_e3_e8_no_news_of_a_replica_changes_what_is_counted_on_it():
    """Load is what the ledger says: not what a probe, a scrape or a second announcement says."""
    async with Upstream(says_nothing) as model, front(model.replica(slots=3)) as proxy:
        clients = [await proxy.client() for _ in range(3)]
        for count, client in enumerate(clients, start=1):
            client.ask("/v1/x", b"{}")
            await proxy.until(busy=count)
        replica_id = model.replica().id
        for slots in (3, 5, 3):
            proxy.drive.replica_ready(model.replica(slots=slots))
            assert proxy.drive.busy_slots() == {replica_id: 3}
        proxy.drive.replica_draining(replica_id)
        assert proxy.drive.busy_slots() == {replica_id: 3}
        proxy.drive.replica_ready(model.replica(slots=3))
        for client in clients:
            client.close()
        await proxy.until(busy=0)
        assert proxy.drive.busy_slots() == {replica_id: 0}


async def test_t1_mixed_time_outs_leave_the_counters_exact():
    rng = random.Random(1)
    async with Upstream(takes_a_moment) as model, front(model.replica(slots=2)) as proxy:
        asked = [
            proxy.ask("/v1/x", b"{}", f"X-Request-Timeout-Ms: {rng.choice([5, 15, 40, 2000])}")
            for _ in range(60)
        ]
        statuses = [answer.status for answer in await asyncio.gather(*asked)]
        assert set(statuses) <= {200, 503, 504}
        assert 200 in statuses
        await proxy.check_nothing_is_left()
        assert proxy.facts.outcomes[Outcome.COMPLETED] >= statuses.count(200)


async def test_e1_who_waits_longer_than_a_connection_may_idle_is_not_forgotten():
    gate = asyncio.Event()

    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says()(wire, request)

    options = ProxyOptions(port=0, head_timeout=0.05, client_keepalive=0.05, linger=0.1)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        first, second = [asyncio.create_task(proxy.ask()) for _ in range(2)]
        await proxy.until(waiting=1, busy=1)
        await asyncio.sleep(0.25)
        gate.set()
        assert [(await each).status for each in (first, second)] == [200, 200]


async def test_t16_a29_a_slot_is_given_on_when_the_server_has_seen_the_end_of_the_call():
    seen: list[bool] = []

    async def script(wire: UpstreamWire, request: Received) -> None:
        if request.head.target == "/next":
            seen.append(model.wires[0].closed.is_set())
            await says()(wire, request)
        else:
            await wire.closed.wait()

    model = Upstream(script)
    async with model, front(model.replica()) as proxy:
        gone = await proxy.client()
        gone.ask("/long", b"{}")
        await model.got(1)
        waits = asyncio.create_task(proxy.ask("/next"))
        await proxy.until(waiting=1)
        gone.reset()
        assert (await waits).status == 200
    assert seen == [True]


async def test_r12_what_is_buffered_goes_on_together_and_nothing_waits_for_more():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send(b"".join(b"d\r\ndata: token\n\n\r\n" for _ in range(100)))
        await gate.wait()
        wire.send_chunk(b"")

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        received, chunks = b"", 0
        while len(received) < 1300:
            received += await client.chunk()
            chunks += 1
        assert received == b"data: token\n\n" * 100
        assert chunks <= 10
        gate.set()
        assert await client.chunk() == b""
        client.close()


async def test_k3_after_scale_events_every_replica_gets_its_share():
    models = [Upstream(takes_a_moment) for _ in range(5)]
    for model in models:
        await model.__aenter__()

    def replica(n: int, generation: int) -> Replica:
        return models[n].replica(slots=2, id=f"r{n}-{generation}")

    try:
        async with front(*(replica(n, 0) for n in range(2))) as proxy:
            load = [asyncio.create_task(proxy.ask()) for _ in range(40)]
            for n in range(2, 5):
                proxy.drive.replica_ready(replica(n, 0))
            proxy.drive.replica_draining("r0-0")
            proxy.drive.replica_ready(replica(0, 0))
            await asyncio.gather(*load)
            before = [len(model.requests) for model in models]
            await asyncio.gather(*(proxy.ask() for _ in range(100)))
            got = [len(model.requests) - had for model, had in zip(models, before, strict=True)]
            assert min(got) >= 10, got  # 20 each, if all were alike to the millisecond
    finally:
        for model in models:
            await model.__aexit__()


async def test_a24_a_pool_that_is_gone_leaves_no_task_behind():
    before = len(asyncio.all_tasks())
    for _ in range(3):
        async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
            running, waiting = [await proxy.client() for _ in range(2)]
            running.ask("/v1/x", b"{}")
            await model.got(1)
            waiting.ask("/v1/x", b"{}", "X-Want-Queue-Info: 1")
            await proxy.until(waiting=1)
            await proxy.server.stop()
            await asyncio.gather(running.wait_closed(), waiting.wait_closed())
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.005)
