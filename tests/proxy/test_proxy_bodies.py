"""On the wire: bodies of every size, speed and framing on their way to the server."""

import asyncio

import pytest

from autoscaler.proxy.options import ProxyOptions, RouteOptions
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing

KIB = 1024
SMALL = ProxyOptions(
    port=0, body_bytes_max=400 * KIB, body_spool_bytes=64 * KIB, read_buffer_bytes=16 * KIB, linger=0.1
)  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 64 * KIB, 64 * KIB + 1, 400 * KIB])
async def test_a_counted_body_arrives_counted_whatever_its_size(size):
    body = bytes(i % 251 for i in range(size))
    async with Upstream() as model, front(model.replica(), options=SMALL) as proxy:
        assert (await proxy.ask("/v1/x", body)).status == 200
    assert model.requests[0].body == body
    assert model.requests[0].head.all("Content-Length") == [str(size)]
    assert model.requests[0].head.get("Transfer-Encoding") is None


@pytest.mark.parametrize("size", [0, 10, 300 * KIB])
async def test_a_chunked_body_arrives_with_one_true_framing(size):
    async with Upstream() as model, front(model.replica(), options=SMALL) as proxy:
        client = await proxy.client()
        client.ask("/v1/x", None, "Transfer-Encoding: chunked")
        for _ in range(size // 10):
            client.send(b"a;ext=1\r\n0123456789\r\n")
        client.send(b"0\r\nX-Trailer: 1\r\n\r\n")
        assert (await client.answer()).status == 200
        client.close()
    head = model.requests[0].head
    assert len(model.requests[0].body) == size
    assert (head.get("Content-Length") is None) != (head.get("Transfer-Encoding") is None)


async def test_a_body_that_is_still_coming_in_holds_no_slot():
    async with Upstream() as model, front(model.replica(), options=SMALL) as proxy:
        slow = await proxy.client()
        slow.send(b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
        assert (await proxy.ask("/quick")).status == 200
        slow.send(b"def")
        assert (await slow.answer()).status == 200
        slow.close()
    assert [request.head.target for request in model.requests] == ["/quick", "/slow"]


async def test_a_large_body_streams_while_it_comes_in():
    async def script(wire: UpstreamWire, request: Received) -> None:
        assert await wire.exactly(100 * KIB) == bytes(100 * KIB)
        half_here.set()
        await wire.exactly(100 * KIB)
        await says()(wire, request)

    half_here = asyncio.Event()
    async with Upstream(script, reads_bodies=False) as model, front(model.replica(), options=SMALL) as proxy:
        client = await proxy.client()
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 204800\r\n\r\n" + bytes(100 * KIB))
        await half_here.wait()
        client.send(bytes(100 * KIB))
        assert (await client.answer()).status == 200
        client.close()


async def test_s13_a_slow_server_slows_the_client_down_and_not_the_proxys_memory():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.transport.pause_reading()
        await gate.wait()
        wire.transport.resume_reading()
        await wire.exactly(size)
        await says()(wire, request)

    size, gate = 32 * 1024 * KIB, asyncio.Event()
    options = ProxyOptions(port=0, body_spool_bytes=64 * KIB, read_buffer_bytes=16 * KIB)
    async with (
        Upstream(script, reads_bodies=False) as model,
        front(model.replica(), options=options) as proxy,
    ):
        client = await proxy.client()
        client.send(f"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode())
        client.send(bytes(size))
        await model.got(1)
        left = -1
        while left != (left := client.transport.get_write_buffer_size()):
            await asyncio.sleep(0.05)
        assert left > size / 4, "the proxy, or the kernel, has taken in most of it"
        gate.set()
        assert (await client.answer()).status == 200
        client.close()


async def test_a_declared_length_over_the_limit_is_refused_before_a_byte_of_it():
    async with Upstream() as model, front(model.replica(), options=SMALL) as proxy:
        client = await proxy.client()
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 409601\r\n\r\n")
        answer = await client.answer()
        assert (answer.status, answer.json["error"]["code"]) == (413, "body_too_large")
        assert "409600" in answer.json["error"]["message"]
        client.close()
    assert model.requests == []


@pytest.mark.parametrize("spool", [64 * KIB, 1024 * KIB])
async def test_a_chunked_body_over_the_limit_is_refused_when_it_gets_there(spool):
    options = ProxyOptions(port=0, body_bytes_max=200 * KIB, body_spool_bytes=spool, linger=0.1)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client()
        client.ask("/v1/x", None, "Transfer-Encoding: chunked")
        for _ in range(201):
            client.send(b"400\r\n" + bytes(KIB) + b"\r\n")
        assert (await client.answer()).status == 413
        client.close()
    assert model.requests == []  # none that was whole


@pytest.mark.parametrize("spool", [KIB, 64 * KIB])
async def test_a_body_that_drips_is_told_408(spool):
    options = ProxyOptions(port=0, body_timeout=0.2, body_rate_min=1e6, body_spool_bytes=spool, linger=0.05)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client()
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(2 * KIB))
        while not client.buffer and not client.closed.is_set():
            client.send(b"x")
            await asyncio.sleep(0.01)
        assert (await client.answer()).status == 408
        client.close()


@pytest.mark.parametrize("broken", [b"6\r\nabcde\r\n0\r\n\r\n", b"zz\r\nab\r\n", b"-1\r\n\r\n"])
@pytest.mark.parametrize("spool", [1, 64 * KIB])
@pytest.mark.parametrize("pause", [0, 0.02])
async def test_a8_a_chunk_that_lies_about_its_size_is_told_400(broken, spool, pause):
    options = ProxyOptions(port=0, body_spool_bytes=spool, linger=0.05)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client()
        client.ask("/v1/x", None, "Transfer-Encoding: chunked")
        client.send(b"3\r\nabc\r\n")
        await asyncio.sleep(pause)
        client.send(broken)
        assert (await client.answer()).status == 400
        client.close()
    assert model.requests == []


async def test_a1_who_expects_100_is_asked_for_the_body_when_there_is_a_slot():
    body = bytes(2 * 1024 * KIB)
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(
            b"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        assert (await client.head()).status == 100
        client.send(body)
        assert (await client.answer()).status == 200
        client.ask()  # and the connection is in step
        assert (await client.answer()).status == 200
        client.close()
    assert model.requests[0].body == body
    assert model.requests[0].head.get("Expect") is None


async def test_a1_who_expects_100_may_get_a_final_answer_instead_and_sends_nothing():
    async with front(route=RouteOptions(wait_timeout=0.1)) as proxy:
        client = await proxy.client()
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n")
        assert (await client.answer()).status == 503
        client.close()


async def test_k9_an_answer_that_comes_before_the_body_has_ended_is_passed_on():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await wire.exactly(64 * KIB)
        await says(b"too much", status="413 Content Too Large")(wire, request)
        await wire.wait_closed()

    async with Upstream(script, reads_bodies=False) as model, front(model.replica(), options=SMALL) as proxy:
        client = await proxy.client()
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + bytes(100 * KIB))
        answer = await client.answer()
        assert (answer.status, answer.body) == (413, b"too much")
        client.close()


async def test_a_body_is_not_held_while_its_answer_streams():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Length: 1")
        await gate.wait()
        wire.send(b"x")

    gate = asyncio.Event()
    options = ProxyOptions(port=0, body_spool_bytes_total=64 * KIB)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client()
        client.ask("/v1/x", bytes(64 * KIB))
        head = await client.head()
        assert proxy.server._door.budget.bytes_left == 64 * KIB
        gate.set()
        assert await client.body(head) == b"x"
        client.close()


async def test_bodies_that_are_read_ahead_share_a_bound_and_beyond_it_are_streamed():
    options = ProxyOptions(port=0, body_spool_bytes=64 * KIB, body_spool_bytes_total=64 * KIB)
    async with Upstream() as model, front(model.replica(slots=4), options=options) as proxy:
        hoarder = await proxy.client()
        hoarder.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n" + bytes(64 * KIB - 1))
        await asyncio.sleep(0.05)
        assert (await proxy.ask("/y", bytes(10 * KIB))).status == 200
        hoarder.send(b"x")
        assert (await hoarder.answer()).status == 200
        assert (await proxy.ask("/z", bytes(64 * KIB))).status == 200
        hoarder.close()
    assert [len(request.body) for request in model.requests] == [10 * KIB, 64 * KIB, 64 * KIB]


async def test_p2_a_server_that_takes_no_body_is_given_up():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.transport.pause_reading()
        await wire.wait_closed()

    size = 32 * 1024 * KIB
    options = ProxyOptions(port=0, body_spool_bytes=64 * KIB, linger=0.05)
    route = RouteOptions(first_byte_timeout=0.2)
    async with (
        Upstream(script, reads_bodies=False) as model,
        front(model.replica(), options=options, route=route) as proxy,
    ):
        client = await proxy.client()
        client.send(f"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size))
        assert (await client.answer()).status == 504
        client.close()


async def test_large_and_small_bodies_to_a_server_that_says_nothing_leave_nothing_behind():
    route = RouteOptions(first_byte_timeout=0.15)
    async with (
        Upstream(says_nothing) as model,
        front(model.replica(slots=3), options=SMALL, route=route) as proxy,
    ):
        answers = await asyncio.gather(*(proxy.ask("/v1/x", bytes(size)) for size in (0, 10, 300 * KIB)))
        assert [answer.status for answer in answers] == [504] * 3
        assert {answer.head.get("X-Request-Executed") for answer in answers} == {"maybe"}
