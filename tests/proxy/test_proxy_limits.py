"""On the wire: what is too large, too many, too slow, or more than this machine can hold."""

import asyncio
import errno
import os
import socket

import pytest

from autoscaler.proxy.call import Call
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.upstream_connection import UpstreamConnection
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing

KIB = 1024


@pytest.mark.parametrize(
    "head, status",
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (b"GET /x HTTP/1.1\r\nHost: a\r\n" + b"a" * 9000 + b": 1\r\n\r\n", 431),
        (b"GET /x HTTP/1.1\r\nHost: a\r\n" + b"A: 1\r\n" * 200 + b"\r\n", 431),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nA: b\x01\r\n\r\n", 400),
    ],
)
async def test_what_is_too_large_is_told_apart_from_what_is_malformed_and_in_http_1_1(head, status):
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(head)
        answer = await client.answer()
        assert answer.head.start.startswith(f"HTTP/1.1 {status} ")
        assert answer.head.get("Connection") == "close"
        assert answer.json["status"] == status
        await client.wait_closed()
    assert model.requests == []


async def test_the_limits_of_a_head_are_options():
    options = ProxyOptions(port=0, target_bytes_max=20 * KIB, header_bytes_max=20 * KIB, headers_max=300)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        fields = [f"X-{n}: 1" for n in range(200)]
        answer = await proxy.ask("/" + "a" * 19_000, b"{}", "Authorization: " + "b" * 19_000, *fields)
        assert answer.status == 200
        assert len(model.requests[0].head.get("Authorization") or "") == 19_000
        assert (await proxy.ask("/" + "a" * 21_000)).status == 414
        assert (await proxy.ask("/x", b"{}", "A: " + "b" * 21_000)).status == 431


@pytest.mark.parametrize("spool", [0, 64 * KIB])
@pytest.mark.parametrize("rudely", [True, False])
async def test_k9_a_server_that_has_heard_enough_is_heard_although_it_hangs_up(spool, rudely):
    """What was sent after its answer is met with a reset; that must not hide the answer."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        await wire.exactly(10 * KIB)
        wire.transport.pause_reading()  # what comes now is unread when it closes: the kernel resets
        await says(b"too much", "Connection: close", status="413 Content Too Large")(wire, request)
        if rudely:
            while not unread(wire):
                await asyncio.sleep(0.001)
        wire.close()

    def unread(wire: UpstreamWire) -> bool:
        sock: socket.socket = wire.transport.get_extra_info("socket")
        return bool(os.read(os.dup(sock.fileno()), 1))

    options = ProxyOptions(port=0, body_spool_bytes=spool, read_buffer_bytes=16 * KIB, linger=0.2)
    async with (
        Upstream(script, reads_bodies=False) as model,
        front(model.replica(), options=options) as proxy,
    ):
        for _ in range(5):
            client = await proxy.client()
            client.send(
                b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + bytes(2_000_000)
            )
            answer = await client.answer()
            assert (answer.status, answer.body) == (413, b"too much")
            client.close()


async def test_what_a_server_said_before_a_reset_is_read_whatever_fails_first():
    """The same, without the race: the write fails, and the answer is in the kernel, not in the program."""
    listener = socket.create_server(("127.0.0.1", 0))
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(
        lambda: UpstreamConnection(None, 16 * KIB, None, None), "127.0.0.1", listener.getsockname()[1]
    )
    server, _ = listener.accept()
    call = Call(lambda over: None)
    connection.ask(call, b"POST /x HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n", None, chunked=False)
    transport.pause_reading()
    server.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
    while not server.recv(1):
        await asyncio.sleep(0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    server.close()
    listener.close()
    while not transport.is_closing():
        transport.write(bytes(KIB))
        await asyncio.sleep(0.001)
    async with asyncio.timeout(5):
        await call.head()
    assert (call.status, call.whole) == (413, True)


async def never_takes(proxy: Front, size: int) -> tuple[float, float]:
    """Ask for an answer and take nothing of it; return when it was asked and when it was over [s]."""
    loop = asyncio.get_running_loop()
    client = await proxy.client(receive_buffer=4 * KIB)
    client.transport.pause_reading()
    client.ask()
    await proxy.until(busy=1)
    asked = loop.time()
    await proxy.until(busy=0)
    async with asyncio.timeout(10):
        while proxy.server.in_flight or proxy.server._server.connections:
            await asyncio.sleep(0.005)
    client.transport.abort()
    return asked, loop.time()


async def test_a_client_that_takes_nothing_is_cut_off_and_its_slot_is_free():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(f"Content-Length: {64 * 1024 * KIB}")
        wire.send(bytes(64 * 1024 * KIB))
        await wire.wait_closed()

    options = ProxyOptions(port=0, send_timeout=0.4, read_buffer_bytes=16 * KIB)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        asked, over = await never_takes(proxy, 64 * 1024 * KIB)
        assert over - asked >= 0.4


async def test_a_client_that_takes_nothing_does_not_keep_its_connection_after_the_end_either():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        (to_client,) = proxy.server._server.connections
        while not to_client.writing_paused:
            wire.send_chunk(bytes(16 * KIB))
            await asyncio.sleep(0.002)
        wire.close()  # broken off: the proxy closes too, with all that in its buffer

    options = ProxyOptions(port=0, send_timeout=0.4, linger=30)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        await never_takes(proxy, 0)


async def test_s18_a_client_that_reads_slowly_is_not_cut_off():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(f"Content-Length: {size}")
        wire.send(bytes(size))

    size = 4 * 1024 * KIB
    options = ProxyOptions(port=0, send_timeout=0.5, read_buffer_bytes=16 * KIB)
    async with Upstream(script) as model, front(model.replica(), options=options) as proxy:
        client = await proxy.client(receive_buffer=64 * KIB)
        client.ask()
        head = await client.head()
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - began < 1.2:  # more than twice the limit
            client.transport.pause_reading()
            await asyncio.sleep(0.05)
            client.transport.resume_reading()
            await asyncio.sleep(0.005)
        assert len(await client.body(head)) == size
        client.close()


async def test_l10_more_clients_than_may_be_connected_are_told_so(caplog):
    options = ProxyOptions(port=0, connections_max=3)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        first = [await proxy.client() for _ in range(3)]
        for client in first:
            client.ask()
            assert (await client.answer()).status == 200
        refused = await proxy.client()
        answer = await refused.answer()
        assert (answer.status, answer.json["code"]) == (503, "too_many_connections")
        assert answer.head.get("Retry-After") == "1"
        await refused.wait_closed()
        first[0].close()
        async with asyncio.timeout(5):
            while len(proxy.server._server.connections) > 2:
                await asyncio.sleep(0.002)
        assert (await proxy.ask()).status == 200
        for client in first:
            client.close()
    assert "as many as may be" in caplog.text


async def test_a_machine_without_descriptors_is_not_the_fault_of_a_replica(monkeypatch, caplog):
    async def no_socket(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with Upstream() as model, front(model.replica()) as proxy:
        with monkeypatch.context() as patch:
            patch.setattr("aiohappyeyeballs.start_connection", no_socket)
            answer = await proxy.ask()
        assert (answer.status, answer.json["error"]["code"]) == (503, "no_descriptors")
        assert answer.head.get("X-Request-Executed") == "no"
        assert (await proxy.ask()).status == 200  # the replica is not spared for it
    assert "no descriptor is left" in caplog.text


async def test_p2_t8_a_server_that_accepts_and_says_nothing_is_504_in_time():
    route = RouteOptions(first_byte_timeout=0.2)
    async with Upstream(says_nothing) as model, front(model.replica(), route=route) as proxy:
        answer = await proxy.ask()
        assert (answer.status, answer.head.get("X-Request-Executed")) == (504, "maybe")
        await model.wires[0].wait_closed()


@pytest.mark.parametrize("said", ["0", "-1", "1.5", "soon", "", "9" * 30])
async def test_a_timeout_that_cannot_be_read_is_told(said):
    async with Upstream() as model, front(model.replica()) as proxy:
        answer = await proxy.ask("/v1/x", b"{}", f"X-Request-Timeout-Ms: {said}")
        assert (answer.status, answer.json["error"]["code"]) == (400, "bad_timeout")


async def test_a22_a_request_is_of_no_use_after_its_own_deadline_wherever_it_stands():
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        running = asyncio.create_task(proxy.ask("/v1/x", b"{}", "X-Request-Timeout-Ms: 300"))
        await model.got(1)
        waiting = await proxy.ask("/v1/x", b"{}", "X-Request-Timeout-Ms: 50")
        assert (waiting.status, waiting.head.get("X-Request-Executed")) == (504, "no")
        late = await running
        assert (late.status, late.head.get("X-Request-Executed")) == (504, "maybe")
        await model.wires[0].wait_closed()
    assert len(model.requests) == 1
