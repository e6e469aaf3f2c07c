"""On the wire: a client leaves, wherever its request stands; the server feels it, and the slot is free."""

import asyncio
import random
import resource

import psutil
import pytest

from autoscaler.domain import Outcome
from autoscaler.proxy.options import ProxyOptions
from tests.fakes.client import Client
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Script, Upstream, UpstreamWire, says, says_nothing

FELT_WITHIN = 0.1
"""A client that leaves is felt by the server within this [s]; the machine that tests may be busy."""

KIB = 1024


async def streams_for_ever(wire: UpstreamWire, request: Received) -> None:
    wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    while not wire.closed.is_set():
        wire.send_chunk(b"data: token\n\n")
        await asyncio.sleep(0.005)


async def leaves(client: Client, how: str, server: UpstreamWire) -> float:
    """Let the client leave; return how long it took until the server felt it [s]."""
    left_at = asyncio.get_running_loop().time()
    client.reset() if how == "reset" else client.close()
    await server.wait_closed()
    assert server.closed_at is not None
    return server.closed_at - left_at


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v2/models/m/infer", "/any"])
async def test_s3_p1_l2_a3_a26_client_gone_before_the_first_byte_closes_the_upstream(how, path):
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask(path, b'{"stream":true}')
        await model.got(1)
        assert await leaves(client, how, model.wires[0]) < FELT_WITHIN
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_s3_client_gone_in_mid_stream_closes_the_upstream(how):
    async with Upstream(streams_for_ever) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        await client.event()
        assert await leaves(client, how, model.wires[0]) < FELT_WITHIN
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_client_gone_while_the_server_does_not_take_its_body():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.transport.pause_reading()
        await asyncio.Event().wait()

    def connections_to_the_server() -> int:
        mine = psutil.Process().net_connections("tcp")
        return sum(bool(each.raddr) and each.raddr.port == model.port for each in mine)

    size = 32 * 1024 * KIB
    options = ProxyOptions(port=0, body_spool_bytes=64 * KIB)
    model = Upstream(script, reads_bodies=False)
    async with model, front(model.replica(), options=options) as proxy:
        client = await proxy.client()
        client.send(f"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size))
        await model.got(1)
        await asyncio.sleep(0.02)
        assert connections_to_the_server() == 1
        client.reset()
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}
        async with asyncio.timeout(5):
            while connections_to_the_server():  # nothing waits for bytes to be taken that nobody wants
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "how, size",
    [
        ("reset", 2),
        ("close", 2),
        ("reset", 500 * KIB),  # more than is read ahead: nothing reads from the client any more
        ("close", 500 * KIB),
        ("reset", 8 * 1024 * KIB),  # more than the kernels hold; of a close behind it nobody would know
    ],
)
async def test_s17_r4_client_gone_while_queued_leaves_the_queue_at_once(how, size):
    options = ProxyOptions(port=0, body_spool_bytes=64 * KIB, read_buffer_bytes=16 * KIB)
    async with Upstream(says_nothing) as model, front(model.replica(), options=options) as proxy:
        first, second = await proxy.client(), await proxy.client()
        first.ask()
        await model.got(1)
        second.ask("/v1/x", bytes(size))
        await proxy.until(waiting=1)
        while how == "close" and second.transport.get_write_buffer_size():
            await asyncio.sleep(0.01)
        second.reset() if how == "reset" else second.close()
        await proxy.until(waiting=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}
        first.close()
    assert len(model.requests) == 1


async def test_s17_fifty_of_a_hundred_leave_the_queue_and_the_other_fifty_are_served():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says()(wire, request)

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        clients = [await proxy.client() for _ in range(101)]
        for client in clients:
            client.ask("/v1/x", b"{}")
        await proxy.until(waiting=100, busy=1)
        for client in clients[1::2]:
            client.close()
        await proxy.until(waiting=50, busy=1)
        gate.set()
        assert {(await client.answer()).status for client in clients[::2]} == {200}
        await proxy.until(waiting=0, busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 50, Outcome.COMPLETED: 51}
        for client in clients[::2]:
            client.close()
    assert len(model.requests) == 51


async def test_client_gone_while_its_body_comes_in_was_never_there():
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf of it")
        await asyncio.sleep(0.02)
        client.reset()
    assert (model.requests, proxy.facts.told) == ([], [])


async def test_client_gone_while_it_streams_its_body_takes_the_upstream_with_it():
    options = ProxyOptions(port=0, body_spool_bytes=KIB)
    async with Upstream(reads_bodies=False) as model, front(model.replica(), options=options) as proxy:
        model.script = says_nothing
        client = await proxy.client()
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(10 * KIB))
        await model.got(1)
        assert await leaves(client, "close", model.wires[0]) < FELT_WITHIN
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_l3_a_client_that_leaves_is_no_failure_of_the_server():
    async with Upstream(says_nothing) as model, front(model.replica(slots=20)) as proxy:
        clients = [await proxy.client() for _ in range(20)]
        for client in clients:
            client.ask()
        await model.got(20)
        for client in clients:
            client.reset()
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 20}
        model.script = says(b"still here")
        assert (await proxy.ask()).body == b"still here"


@pytest.mark.parametrize("seed", range(3))
async def test_s9_l1_p5_at_whatever_byte_clients_leave_nothing_is_left_in_flight(seed):
    async def script(wire: UpstreamWire, request: Received) -> None:
        await asyncio.sleep(rng.choice([0, 0.002]))
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for _ in range(3):
            wire.send_chunk(b"data: token\n\n")
            await asyncio.sleep(rng.choice([0, 0.001]))
        wire.send_chunk(b"")

    async def one() -> None:
        client = await proxy.client()
        message = b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n" + bytes(5000)
        cut = rng.randrange(len(message) * 2)
        client.send(message[:cut])
        try:
            if rng.random() < 0.5:
                async with asyncio.timeout(rng.random() * 0.02):
                    await client.answer()
            else:
                await asyncio.sleep(rng.random() * 0.01)
        except (TimeoutError, EOFError):
            pass
        client.reset() if rng.random() < 0.5 else client.close()

    rng = random.Random(seed)
    async with Upstream(script) as model, front(model.replica(slots=4)) as proxy:
        await asyncio.gather(*(one() for _ in range(60)))
        await proxy.until(waiting=0, busy=0)
        assert (await proxy.ask()).status == 200


async def test_s18_a_slow_reader_costs_the_proxy_next_to_nothing_and_holds_the_server_back():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(f"Content-Length: {size}")
        wire.send(bytes(size))
        await wire.wait_closed()

    size = 64 * 1024 * KIB
    options = ProxyOptions(port=0, read_buffer_bytes=16 * KIB)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client(receive_buffer=16 * KIB)
        client.ask()
        await client.head()
        client.transport.pause_reading()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        left = -1
        while left != (left := model.wires[0].transport.get_write_buffer_size()):
            await asyncio.sleep(0.05)
        assert left > size / 2, "the proxy has taken in most of it"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 * KIB  # in KiB
        client.reset()
        await proxy.until(busy=0)


def fills_every_buffer_on_the_way(proxy: list[Front]) -> Script:
    """A script whose answer is received by the proxy to its end, and cannot be passed on to its end."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        (to_client,) = proxy[0].server._server.connections
        while not to_client.writing_paused:
            wire.send_chunk(bytes(16 * KIB))
            await asyncio.sleep(0.002)
        wire.send_chunk(b"the end")
        wire.send_chunk(b"")

    return script


async def test_a_client_that_leaves_late_does_not_break_the_next_request_on_the_same_connection():
    async def waits(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says(b"whole")(wire, request)

    gate, where = asyncio.Event(), []
    script = fills_every_buffer_on_the_way(where)
    async with Upstream(script) as model, front(model.replica()) as proxy:
        where.append(proxy)
        slow = await proxy.client(receive_buffer=4 * KIB)
        slow.transport.pause_reading()
        slow.ask()
        await model.got(1)
        await proxy.until(busy=0)
        model.script = waits
        asked = asyncio.create_task(proxy.ask())
        await model.got(2)
        slow.reset()
        await asyncio.sleep(0.05)
        gate.set()
        assert (await asked).body == b"whole"
    assert len(model.wires) == 1


async def test_a_slot_is_free_when_the_server_is_done_although_the_client_still_reads():
    where: list[Front] = []
    script = fills_every_buffer_on_the_way(where)
    async with Upstream(script) as model, front(model.replica()) as proxy:
        where.append(proxy)
        client = await proxy.client(receive_buffer=4 * KIB)
        client.transport.pause_reading()
        client.ask()
        await model.got(1)
        await proxy.until(busy=0)
        assert proxy.server.in_flight == 1
        client.transport.resume_reading()
        assert (await client.answer()).body.endswith(b"the end")
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 1}
        client.close()
