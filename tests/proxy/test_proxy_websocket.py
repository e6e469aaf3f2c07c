"""On the wire: a WebSocket through the proxy, byte for byte, with one slot for its life."""

import asyncio
import base64
import hashlib

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.domain import Outcome
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.tunnel import Frames
from tests.fakes.client import Client
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says

KIB = 1024
KEY = base64.b64encode(bytes(16)).decode()
ACCEPT = base64.b64encode(
    hashlib.sha1(f"{KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
).decode()
HANDSHAKE = (
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {KEY}",
    "Sec-WebSocket-Protocol: realtime, chat",
    "Sec-WebSocket-Extensions: permessage-deflate",
)


def agrees(wire: UpstreamWire) -> None:
    wire.send_head(
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {ACCEPT}",
        "Sec-WebSocket-Protocol: realtime",
        status="101 Switching Protocols",
    )


async def agrees_and_is_silent(wire: UpstreamWire, request: Received) -> None:
    agrees(wire)
    await wire.wait_closed()


async def shakes_hands(proxy: Front, *more: str) -> Client:
    client = await proxy.client()
    client.ask("/v1/realtime", None, *HANDSHAKE, *more, method="GET")
    head = await client.head()
    assert head.status == 101
    assert head.get("Sec-WebSocket-Accept") == ACCEPT
    assert head.get("Sec-WebSocket-Protocol") == "realtime"
    assert (head.get("Connection"), head.get("Upgrade")) == ("Upgrade", "websocket")
    assert head.get("Transfer-Encoding") is None
    return client


async def test_e15_the_handshake_passes_whole_and_takes_a_slot_before_any_frame():
    async with Upstream(agrees_and_is_silent) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        await proxy.until(busy=1)
        head = model.requests[0].head
        assert head.get("Sec-WebSocket-Key") == KEY
        assert head.get("Sec-WebSocket-Protocol") == "realtime, chat"
        assert head.get("Sec-WebSocket-Extensions") == "permessage-deflate"
        assert (head.all("Connection"), head.all("Upgrade")) == (["Upgrade"], ["websocket"])
        client.close()
    assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_frames_pass_both_ways_as_the_bytes_they_are():
    async def script(wire: UpstreamWire, request: Received) -> None:
        agrees(wire)
        wire.send(b"\x81\x05first")  # in the same breath as the handshake
        assert await wire.exactly(len(ping)) == ping
        wire.send(b"\x8a\x03abc\x01\x02fr\x80\x01a")  # a pong, a message in two fragments
        assert await wire.exactly(len(close)) == close
        wire.send(b"\x88\x02\x0f\xa1")  # 4001, a code of the application's own
        wire.close()

    ping, close = b"\x89\x83\x01\x02\x03\x04`ag", b"\x88\x82\x00\x00\x00\x00\x0f\xa1"
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        assert await client.exactly(7) == b"\x81\x05first"
        client.send(ping)
        assert await client.exactly(12) == b"\x8a\x03abc\x01\x02fr\x80\x01a"
        client.send(close)
        assert await client.rest() == b"\x88\x02\x0f\xa1"
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 1}


async def test_what_a_client_says_before_the_101_is_here_is_not_lost():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await asyncio.wait_for(gate.wait(), 10)
        agrees(wire)
        wire.send(await wire.exactly(6))
        await wire.wait_closed()

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/v1/realtime", None, *HANDSHAKE, method="GET")
        client.send(b"early!")
        await model.got(1)
        gate.set()
        await client.head()
        assert await client.exactly(6) == b"early!"
        client.close()


async def test_a_client_that_closes_after_its_last_frame_has_it_delivered():
    async def script(wire: UpstreamWire, request: Received) -> None:
        agrees(wire)
        last.set_result(await wire.rest())

    last: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        client.send(b"\x88\x80\x00\x00\x00\x00")
        client.close()
        assert await asyncio.wait_for(last, 10) == b"\x88\x80\x00\x00\x00\x00"


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a_client_that_leaves_is_felt_by_the_server_and_its_slot_is_free(how):
    async with Upstream(agrees_and_is_silent) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        client.reset() if how == "reset" else client.close()
        await model.wires[0].wait_closed()
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_a_server_that_breaks_ends_the_connection_and_nothing_is_made_up():
    async with Upstream(agrees_and_is_silent) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        model.wires[0].reset()
        assert await client.rest() == b""
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.FAILED: 1}


@pytest.mark.parametrize("talks", ["server", "client"])
async def test_s18_an_end_that_takes_nothing_holds_the_other_back(talks):
    async with Upstream(agrees_and_is_silent) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        server = model.wires[0]
        speaker, listener = (server, client) if talks == "server" else (client, server)
        listener.transport.pause_reading()
        size = 32 * 1024 * KIB
        speaker.send(b"\x82\x7f" + (size - 10).to_bytes(8, "big") + bytes(size - 10))
        left = -1
        while left != (left := speaker.transport.get_write_buffer_size()):
            await asyncio.sleep(0.05)
        assert left > size / 2
        listener.transport.resume_reading()
        while len(listener.buffer) < size:
            await asyncio.sleep(0.01)
        client.close()


async def test_a_client_that_leaves_while_the_server_takes_nothing_is_noticed():
    async with Upstream(agrees_and_is_silent) as model, front(model.replica()) as proxy:
        client = await shakes_hands(proxy)
        model.wires[0].transport.pause_reading()
        client.send(bytes(16 * 1024 * KIB))
        await asyncio.sleep(0.05)
        client.reset()
        await proxy.until(busy=0)
        model.wires[0].transport.resume_reading()


async def test_a_server_that_declines_is_heard_and_the_connection_goes_on_in_http():
    async with Upstream(says(b"who?", status="401 Unauthorized")) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/v1/realtime", None, *HANDSHAKE, method="GET")
        assert (await client.answer()).status == 401
        client.ask("/v1/other", b"{}")
        assert (await client.answer()).status == 401
        client.close()


async def test_a_server_that_switches_to_something_else_is_502():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Upgrade: h2c", "Connection: Upgrade", status="101 Switching Protocols")
        await wire.wait_closed()

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/v1/realtime", None, *HANDSHAKE, method="GET")
        answer = await client.answer()
        assert (answer.status, answer.head.get("X-Proxy-Reason")) == (502, "protocol")
        client.close()


async def test_the_end_of_a_drain_closes_with_a_code_that_says_so():
    async def script(wire: UpstreamWire, request: Received) -> None:
        agrees(wire)
        wire.send(b"\x81\x02hi")
        await wire.wait_closed()

    options = ProxyOptions(port=0, drain_max=0.1, linger=0.1)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        client = await shakes_hands(proxy)
        assert await client.exactly(4) == b"\x81\x02hi"
        await proxy.server.drain()
        assert await client.rest() == b"\x88\x02\x03\xf4"  # 1012, service restart
        assert model.wires[0].closed.is_set()


async def test_two_libraries_talk_through_it_with_compression_and_all():
    async def echo(request: aiohttp.web.Request) -> aiohttp.web.WebSocketResponse:
        ws = aiohttp.web.WebSocketResponse(protocols=["realtime"])
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data[::-1])
        return ws

    application = aiohttp.web.Application()
    application.router.add_get("/v1/realtime", echo)
    runner = aiohttp.web.AppRunner(application, access_log=None)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    replica = Upstream().replica.__func__  # the same shape of replica, another server behind it
    served = Upstream()
    served.port = runner.addresses[0][1]
    async with front(replica(served)) as proxy, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{proxy.port}/v1/realtime"
        async with session.ws_connect(url, protocols=["realtime"], compress=15) as ws:
            assert ws.protocol == "realtime"
            for size in (1, 125, 126, 65536, 300 * KIB):
                text = "abc" * size
                await ws.send_str(text)
                assert await ws.receive_str() == text[::-1]
            await ws.close(code=4002)
    await runner.cleanup()


@settings(max_examples=50)
@given(
    frames=st.lists(
        st.tuples(st.sampled_from([0, 1, 125, 126, 127, 65535, 65536]), st.booleans()), max_size=6
    ),
    step=st.integers(1, 5000),
)
def test_boundaries_of_frames_are_found_however_the_bytes_are_cut(frames, step):
    follower = Frames()
    for size, masked in frames:
        length = (
            bytes([size])
            if size < 126
            else b"\x7e" + size.to_bytes(2, "big")
            if size < 65536
            else b"\x7f" + size.to_bytes(8, "big")
        )
        frame = (
            b"\x82"
            + bytes([length[0] | (0x80 if masked else 0)])
            + length[1:]
            + b"mask" * masked
            + bytes(size)
        )
        for at in range(0, len(frame), step):
            follower.follow(frame[at : at + step])
            assert follower.between == (at + step >= len(frame))
