"""On the wire: the end of the program, by what is in flight and not by the clock."""

import asyncio
import json

import pytest

from autoscaler.clock import SystemClock
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.server import ProxyServer
from tests.fakes.client import Client
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing


async def test_k7_t15_what_waits_and_what_runs_ends_well_and_nothing_new_comes_in():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says(b"in time")(wire, request)

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        running, waiting, idle = [await proxy.client() for _ in range(3)]
        running.ask()
        await model.got(1)
        waiting.ask()
        await proxy.until(waiting=1)
        assert proxy.server.ready
        draining = asyncio.create_task(proxy.server.drain())
        await asyncio.sleep(0.05)
        assert not proxy.server.ready
        await idle.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await proxy.client()
        gate.set()
        for client in (running, waiting):
            answer = await client.answer()
            assert (answer.body, answer.head.get("Connection")) == (b"in time", "close")
            await client.wait_closed()
        await draining


async def test_during_the_grace_requests_are_still_served():
    options = ProxyOptions(port=0, drain_grace=0.2)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        draining = asyncio.create_task(proxy.server.drain())
        await asyncio.sleep(0.02)
        assert not proxy.server.ready
        answer = await proxy.ask()
        assert (answer.status, answer.head.get("Connection")) == (200, "close")
        await draining


async def test_k7_what_outlasts_the_drain_is_ended_so_that_its_client_can_tell():
    async def script(wire: UpstreamWire, request: Received) -> None:
        if request.head.target == "/v1/stream":
            wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
            wire.send_chunk(b"data: 1\n\n")
        await says_nothing(wire, request)

    async def ask(path: str) -> Client:
        client = await proxy.client()
        client.ask(path)
        return client

    options = ProxyOptions(port=0, drain_max=0.15, linger=0.1)
    async with Upstream(script) as model, front(model.replica(slots=2), options=options) as proxy:
        stream, mute = await ask("/v1/stream"), await ask("/v1/mute")
        await stream.head()
        await stream.event()
        await model.got(2)
        queued = await ask("/v1/queued")
        await proxy.until(waiting=1)
        await proxy.server.drain()
        assert proxy.server.in_flight == 0
        error = json.loads((await stream.event()).removeprefix("data: "))["error"]
        assert error["code"] == "draining"
        assert await stream.rest() == b""
        for client, executed in ((mute, "maybe"), (queued, "no")):
            answer = await client.answer()
            assert (answer.status, answer.head.get("X-Request-Executed")) == (503, executed)
            assert answer.head.get("Connection") == "close"
    assert len(model.requests) == 2
    assert all(wire.closed.is_set() for wire in model.wires)


async def test_stopping_without_a_drain_ends_everything():
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await model.got(1)
        await proxy.server.stop()
        assert (await client.answer()).status == 503
        await model.wires[0].wait_closed()


async def test_a_server_that_never_started_drains_and_stops_at_once():
    server = ProxyServer(ProxyOptions(port=0), [], SystemClock())
    await server.drain()
    await server.stop()
    assert repr(server) == "<ProxyServer 127.0.0.1:0 not ready in_flight=0>"


async def test_an_answer_that_was_said_in_full_is_not_made_to_look_broken():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        (to_client,) = proxy.server._server.connections
        while (held := to_client.transport.get_write_buffer_size()) < 50_000:  # the client takes no more
            wire.send_chunk(b"data: " + bytes(1000 if held else 15_000) + b"\n\n")
            await asyncio.sleep(0.001)
        event = b"data: " + bytes(20_000) + b"\n\n"
        wire.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event))

    options = ProxyOptions(port=0, drain_max=0.1, linger=5.0)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client(receive_buffer=4096)
        client.transport.pause_reading()
        client.ask()
        await model.got(1)
        await proxy.until(busy=0)
        await proxy.server.drain()
        client.transport.resume_reading()
        await client.head()
        while event := await client.chunk():
            assert b"error" not in event
        assert await client.rest() == b""
