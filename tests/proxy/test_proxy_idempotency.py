"""On the wire: a request with a key is executed once, however often it is sent."""

import asyncio
import json

import pytest

from autoscaler.domain import Outcome
from autoscaler.proxy.idempotency_options import IdempotencyOptions
from autoscaler.proxy.options import ProxyOptions
from tests.fakes.client import Answer
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing

KIB = 1024
KEY = "Idempotency-Key: 8e03978e"


def options(**idempotency: float) -> ProxyOptions:
    return ProxyOptions(port=0, linger=0.1, idempotency=IdempotencyOptions(**idempotency))


def replayed(answer: Answer) -> bool:
    return answer.head.get("Idempotency-Replayed") == "true"


async def test_the_second_time_the_first_answer_is_given():
    async with (
        Upstream(says(b"once", "X-Own: 1", status="201 Made")) as model,
        front(model.replica()) as proxy,
    ):
        first, second = await proxy.ask("/v1/x", b"{}", KEY), await proxy.ask("/v1/x", b"{}", KEY)
        for answer in (first, second):
            assert (answer.head.start, answer.body) == ("HTTP/1.1 201 Made", b"once")
            assert answer.head.get("X-Own") == "1"
        assert (replayed(first), replayed(second)) == (False, True)
    assert len(model.requests) == 1


async def test_who_asks_while_it_runs_joins_it_and_gets_the_stream_from_its_beginning():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send_chunk(b"data: 1\n\n")
        await gate.wait()
        wire.send_chunk(b"data: 2\n\n")
        wire.send_chunk(b"")

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        clients = [await proxy.client() for _ in range(3)]
        for client in clients:
            client.ask("/v1/x", b"{}", KEY)
            await client.head()
            assert await client.event() == "data: 1\n\n"
        assert proxy.drive.snapshot().busy == 1
        gate.set()
        for client in clients:
            assert [await client.event(), await client.chunk()] == ["data: 2\n\n", b""]
            client.close()
        assert (await proxy.ask("/v1/x", b"{}", KEY)).body == b"data: 1\n\ndata: 2\n\n"
    assert len(model.requests) == 1
    assert proxy.facts.outcomes == {Outcome.COMPLETED: 1}


@pytest.mark.parametrize("other", [("/v1/x", b"[]"), ("/v1/y", b"{}")])
async def test_the_same_key_with_another_request_is_422(other):
    async with Upstream() as model, front(model.replica()) as proxy:
        assert (await proxy.ask("/v1/x", b"{}", KEY)).status == 200
        answer = await proxy.ask(*other, KEY)
        assert (answer.status, answer.json["error"]["code"]) == (422, "idempotency_key_reused")
    assert len(model.requests) == 1


async def test_nobody_is_given_the_answer_of_another():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await says((request.head.get("Authorization") or "nobody").encode())(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        for who in ("Bearer a", "Bearer b"):
            answer = await proxy.ask("/v1/x", b"{}", KEY, f"Authorization: {who}")
            assert (answer.body, replayed(answer)) == (who.encode(), False)
    assert len(model.requests) == 2


@pytest.mark.parametrize("status", ["500 Oh", "503 Busy", "429 Slow down"])
async def test_an_answer_that_may_be_better_next_time_is_not_kept(status):
    async with Upstream(says(b"no", status=status)) as model, front(model.replica()) as proxy:
        assert (await proxy.ask("/v1/x", b"{}", KEY)).head.start.endswith(status)
        model.script = says(b"yes")
        answer = await proxy.ask("/v1/x", b"{}", KEY)
        assert (answer.body, replayed(answer)) == (b"yes", False)


async def test_an_answer_that_broke_off_is_told_to_all_and_not_kept():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send_chunk(b"data: 1\n\n")
        await gate.wait()
        wire.reset()

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        clients = [await proxy.client() for _ in range(2)]
        for client in clients:
            client.ask("/v1/x", b"{}", KEY)
            await client.head()
            await client.event()
        gate.set()
        for client in clients:
            error = json.loads((await client.event()).removeprefix("data: "))["error"]
            assert error["code"] == "upstream_truncated"
            assert await client.rest() == b""
        model.script = says(b"well")
        async with asyncio.timeout(5):
            assert (await proxy.ask("/v1/x", b"{}", KEY)).body == b"well"


async def test_a_client_that_left_finds_its_request_still_running():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says(b"worth it")(wire, request)

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/v1/x", b"{}", KEY)
        await model.got(1)
        client.reset()
        asked = asyncio.create_task(proxy.ask("/v1/x", b"{}", KEY))
        await asyncio.sleep(0.05)
        gate.set()
        assert (await asked).body == b"worth it"
    assert len(model.requests) == 1


async def test_when_nobody_comes_back_in_time_the_server_is_let_off():
    async with (
        Upstream(says_nothing) as model,
        front(model.replica(), options=options(patience=0.1)) as proxy,
    ):
        client = await proxy.client()
        client.ask("/v1/x", b"{}", KEY)
        await model.got(1)
        client.close()
        await model.wires[0].wait_closed()
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}
        model.script = says()
        assert not replayed(await proxy.ask("/v1/x", b"{}", KEY))


async def test_what_is_kept_is_bounded_in_number_bytes_and_time():
    async def keys_replayed(proxy: Front, *keys: int) -> list[int]:
        return [n for n in keys if replayed(await proxy.ask("/v1/x", b"{}", f"Idempotency-Key: {n}"))]

    async with Upstream(says(bytes(10 * KIB))) as model:
        async with front(model.replica(), options=options(answers_max=2)) as proxy:
            assert await keys_replayed(proxy, 1, 2, 3, 3, 2, 1) == [3, 2]
        async with front(model.replica(), options=options(bytes_total=25 * KIB)) as proxy:
            assert await keys_replayed(proxy, 1, 2, 3, 3, 2, 1) == [3, 2]
        async with front(model.replica(), options=options(answer_bytes_max=9 * KIB)) as proxy:
            assert await keys_replayed(proxy, 1, 1) == []
        async with front(model.replica(), options=options(keep=0.05)) as proxy:
            assert await keys_replayed(proxy, 1, 1) == [1]
            await asyncio.sleep(0.1)
            assert await keys_replayed(proxy, 1) == []


async def test_an_answer_that_outgrows_its_bound_streams_on_and_lets_nobody_else_in():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        for _ in range(64):
            wire.send_chunk(bytes(4 * KIB))
            await asyncio.sleep(0)
        await gate.wait()
        wire.send_chunk(b"the end")
        wire.send_chunk(b"")

    gate = asyncio.Event()
    async with (
        Upstream(script) as model,
        front(model.replica(), options=options(answer_bytes_max=16 * KIB)) as proxy,
    ):
        client = await proxy.client()
        client.ask("/v1/x", b"{}", KEY)
        await client.head()
        received = b""
        while len(received) < 256 * KIB:
            received += await client.chunk()
        late = await proxy.ask("/v1/x", b"{}", KEY)
        assert (late.status, late.head.get("X-Request-Executed")) == (409, "maybe")
        gate.set()
        assert [await client.chunk(), await client.chunk()] == [b"the end", b""]
        client.close()


async def test_a_body_that_is_not_read_whole_cannot_have_a_key():
    small = ProxyOptions(port=0, body_spool_bytes=KIB, linger=0.1)
    async with Upstream() as model, front(model.replica(), options=small) as proxy:
        answer = await proxy.ask("/v1/x", bytes(1024 * KIB), KEY)
        assert (answer.status, answer.json["error"]["code"]) == (413, "body_too_large_for_key")
    assert model.requests == []


async def test_a_refusal_is_told_to_all_and_not_kept():
    async with front() as proxy:
        first = await proxy.ask("/v1/x", b"{}", KEY, "X-Request-Timeout-Ms: 50")
        assert (first.status in (503, 504), replayed(first)) == (True, False)
        async with Upstream() as model:
            proxy.drive.replica_ready(model.replica())
            answer = await proxy.ask("/v1/x", b"{}", KEY)
            assert (answer.status, replayed(answer)) == (200, False)


async def test_the_end_of_a_drain_ends_what_nobody_reads_too():
    drained = ProxyOptions(port=0, drain_max=0.1, linger=0.1)
    async with Upstream(says_nothing) as model, front(model.replica(), options=drained) as proxy:
        gone, waits = await proxy.client(), await proxy.client()
        gone.ask("/v1/x", b"{}", KEY)
        await model.got(1)
        gone.close()
        waits.ask("/v1/x", b"{}", KEY)
        await asyncio.sleep(0.02)
        await proxy.server.drain()
        assert (await waits.answer()).status == 503
        assert proxy.server.in_flight == 0


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\xe9"])
async def test_a_key_that_is_none_is_told(key):
    async with Upstream() as model, front(model.replica()) as proxy:
        answer = await proxy.ask("/v1/x", b"{}", f"Idempotency-Key: {key}")
        assert (answer.status, answer.json["error"]["code"]) == (400, "bad_idempotency_key")
