"""On the wire: connections to servers, kept, used again, given up; what comes before and behind answers."""

import asyncio
import socket
import sys
from contextlib import ExitStack
from dataclasses import replace

import pytest
from multidict import CIMultiDict

from autoscaler.ports import Replica
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.upstream import Upstream as Way
from tests.fakes.client import Client
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says

KIB = 1024
OPTIONS = ProxyOptions(port=0)


# -- used again


async def test_one_connection_serves_one_request_after_the_other():
    async with Upstream() as model, front(model.replica()) as proxy:
        for _ in range(5):
            assert (await proxy.ask()).status == 200
    assert (len(model.wires), len(model.requests)) == (1, 5)


async def test_the_connection_used_last_is_used_next_so_that_the_others_can_go():
    async def script(wire: UpstreamWire, request: Received) -> None:
        served.append(model.wires.index(wire))
        if len(served) <= 3:
            await gate.wait()
        await says()(wire, request)
        await asyncio.sleep(0)

    served: list[int] = []
    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica(slots=3)) as proxy:
        asked = [asyncio.create_task(proxy.ask()) for _ in range(3)]
        await model.got(3)
        gate.set()
        await asyncio.gather(*asked)
        for _ in range(4):
            await proxy.ask()
        assert len(model.wires) == 3
        assert len(set(served[3:])) == 1


async def test_a_connection_that_has_idled_for_long_is_closed_before_its_server_does():
    options = replace(OPTIONS, upstream_keepalive=0.1)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        await proxy.ask()
        await model.wires[0].wait_closed()
        assert (await proxy.ask()).status == 200
    assert len(model.wires) == 2


@pytest.mark.parametrize(
    "last",
    [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", b"\r\n"],
    ids=["", "408", "crlf"],
)
async def test_a_server_that_says_something_unasked_or_closes_is_not_asked_again_there(last):
    async with Upstream() as model, front(model.replica()) as proxy:
        await proxy.ask()
        model.wires[0].send(last) if last else model.wires[0].close()
        await model.wires[0].wait_closed()
        assert (await proxy.ask()).body == b"ok"
    assert len(model.wires) == 2


@pytest.mark.parametrize(
    "fields, status",
    [(("Connection: close",), "HTTP/1.1 200 OK"), ((), "HTTP/1.0 200 OK")],
)
async def test_a_connection_that_the_server_gives_up_is_given_up(fields, status):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send("\r\n".join([status, *fields, "Content-Length: 2", "", "ok"]).encode())

    async with Upstream(script) as model, front(model.replica()) as proxy:
        for _ in range(2):
            assert (await proxy.ask()).body == b"ok"
        await model.wires[1].wait_closed()
    assert len(model.wires) == 2


async def test_head_is_answered_by_a_head_and_its_connection_goes_on():
    async def script(wire: UpstreamWire, request: Received) -> None:
        if request.head.method == "HEAD":
            wire.send_head("Content-Length: 1234")
        else:
            await says()(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask("/v1/x", None, method="HEAD")
        assert (answer.status, answer.head.get("Content-Length")) == (200, "1234")
        assert (await proxy.ask()).body == b"ok"
    assert len(model.wires) == 1


@pytest.mark.parametrize("slow", [True, False])
async def test_the_connection_is_free_when_the_last_byte_is_here_read_or_not(slow):
    """A client that has not taken its answer yet holds up nobody else."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        await says(bytes(40 * KIB))(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client(receive_buffer=4 * KIB)
        if slow:
            client.transport.pause_reading()
        client.ask()
        await proxy.until(busy=0)
        await model.got(1)
        assert len((await proxy.ask()).body) == 40 * KIB
        client.transport.resume_reading() if slow else None
        assert len((await client.answer()).body) == 40 * KIB
        client.close()
    assert len(model.wires) == 1


# -- where an answer ends


async def test_an_answer_that_ends_with_its_connection_is_whole():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/plain")
        wire.send(b"all there is")
        wire.close()

    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
        assert (answer.status, answer.body) == (200, b"all there is")


async def test_an_answer_that_ends_with_a_reset_is_not_whole():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/plain")
        wire.send(b"some of it")
        await seen.wait()
        wire.reset()

    seen = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.until(b"some of it")
        seen.set()
        assert b"0\r\n\r\n" not in await client.rest()


@pytest.mark.parametrize("smuggled", [b"more", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"])
async def test_what_comes_behind_an_answer_reaches_nobody(smuggled):
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) == 1:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + smuggled)
        else:
            await says(b"well again")(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
        assert (answer.status, answer.head.get("X-Proxy-Reason")) == (502, "protocol")
        await model.wires[0].wait_closed()
        assert (await proxy.ask()).body == b"well again"


async def test_what_comes_behind_an_answer_that_has_begun_goes_down_with_its_connection():
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) > 1:
            await says(b"well again")(wire, request)
            return
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        await seen.wait()
        wire.send(b"kHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    seen = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        head = await client.head()
        seen.set()
        assert await client.body(head) == b"ok"
        await model.wires[0].wait_closed()
        client.ask()
        assert (await client.answer()).body == b"well again"
        client.close()


async def test_a_coding_that_nobody_asked_for_is_502():
    async with (
        Upstream(says(b"", "Transfer-Encoding: gzip, chunked")) as model,
        front(model.replica()) as proxy,
    ):
        assert (await proxy.ask()).head.get("X-Proxy-Reason") == "protocol"


async def test_the_last_that_came_before_a_break_is_passed_on_before_the_error():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send_chunk(b"data: 1\n\n")
        await seen.wait()
        wire.send_chunk(b"data: 2\n\n")
        wire.close()

    seen = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        assert await client.event() == "data: 1\n\n"
        seen.set()
        assert await client.event() == "data: 2\n\n"
        assert "upstream_truncated" in await client.event()


# -- what comes before an answer


def hints(*heads: bytes) -> bytes:
    return b"".join(heads) + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nContent-Length: 9\r\n\r\n"


async def asked_before(proxy: Front, version: bytes = b"1.1") -> tuple[Client, bytes]:
    client = await proxy.client()
    client.send(b"GET /v1/x HTTP/" + version + b"\r\nHost: a\r\nConnection: close\r\n\r\n")
    return client, await client.rest()


async def test_early_hints_are_passed_on_and_a_continue_is_not():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(hints(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n", EARLY))

    async with Upstream(script) as model, front(model.replica()) as proxy:
        _, said = await asked_before(proxy)
    between, _, answer = said.partition(b"HTTP/1.1 200 OK\r\n")
    assert between == (
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
    )
    assert answer.endswith(b"ok")


@pytest.mark.parametrize(
    "version, head",
    [(b"1.0", EARLY), (b"1.1", b"HTTP/1.1 103 Early Hints\r\nLink: a\x01b\r\n\r\n")],
    ids=["to who cannot read them", "with what cannot be written"],
)
async def test_early_hints_are_left_out(version, head):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(hints(head))

    async with Upstream(script) as model, front(model.replica()) as proxy:
        _, said = await asked_before(proxy, version)
    assert said.startswith(b"HTTP/" + version + b" 200 ")


async def test_early_hints_are_no_answer():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(EARLY)
        await wire.wait_closed()

    route = RouteOptions(first_byte_timeout=0.2)
    async with Upstream(script) as model, front(model.replica(), route=route) as proxy:
        client = await proxy.client()
        client.ask()
        assert (await client.head()).status == 103
        assert (await client.answer()).status == 504
        client.close()


async def test_a_used_connection_that_breaks_after_early_hints_was_at_work():
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) == 1:
            await says()(wire, request)
        else:
            wire.send(EARLY)
            wire.reset()

    async with Upstream(script) as model, front(model.replica()) as proxy:
        await proxy.ask()
        client = await proxy.client()
        client.ask()
        head = await client.head()
        if head.status == 103:  # else the reset was faster
            head = await client.head()
        assert (head.status, head.get("X-Request-Executed")) == (502, "maybe")
        client.close()
    assert len(model.requests) == 2


# -- uploads


async def test_an_answer_given_early_ends_the_upload_and_its_connection():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await says(b"enough", status="413 Content Too Large")(wire, request)
        await wire.wait_closed()

    options = replace(OPTIONS, body_spool_bytes=KIB, linger=0.1)
    async with (
        Upstream(script, reads_bodies=False) as model,
        front(model.replica(), options=options) as proxy,
    ):
        client = await proxy.client()
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(50_000))
        answer = await client.answer()
        assert (answer.status, answer.body) == (413, b"enough")
        await model.wires[0].wait_closed()
        client.close()


async def test_an_answer_that_comes_while_the_body_is_sent_is_passed_on_as_it_comes():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        for _ in range(4):
            wire.send_chunk(await wire.chunk())
        wire.send(b"0\r\n\r\n")
        await wire.wait_closed()

    options = replace(OPTIONS, body_spool_bytes=0)
    async with (
        Upstream(script, reads_bodies=False) as model,
        front(model.replica(), options=options) as proxy,
    ):
        client = await proxy.client()
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(4):
            client.send(b"5\r\necho%d\r\n" % n)
            if n == 0:
                assert (await client.head()).status == 200
            assert await client.chunk() == b"echo%d" % n
        client.send(b"0\r\n\r\n")
        assert await client.chunk() == b""
        client.close()


# -- by itself, without a proxy around it


class Nothing:
    """A request without a body."""

    complete = True
    on_progress = None

    def payload(self) -> None:
        return None


async def asked(way: Way, replica: Replica, method: str = "GET", **kwargs: bool) -> bytes:
    call = await way.call(method, replica, "/x", CIMultiDict(), Nothing(), **kwargs)
    body = b""
    while not call.whole:
        body += await call.next_piece()
    call.end()
    return body


@pytest.mark.parametrize("method, length", [("GET", None), ("POST", "0"), ("DELETE", "0"), ("HEAD", None)])
async def test_that_there_is_no_body_is_said_where_one_is_usual(method, length):
    way = Way(OPTIONS, RouteOptions())
    async with Upstream(says(b"")) as model:
        await asked(way, model.replica(), method)
        assert model.requests[0].head.get("Content-Length") == length
        await way.close()


async def test_what_stands_in_the_url_of_a_replica_is_part_of_every_request():
    way = Way(OPTIONS, RouteOptions())
    async with Upstream() as model:
        url = f"http://us%3Aer:secret@localhost:{model.port}/base"
        assert await asked(way, Replica("r", url, 1)) == b"ok"
        head = model.requests[0].head
        assert head.target == "/base/x"
        assert head.get("Host") == f"localhost:{model.port}"
        assert head.get("Authorization") == "Basic dXM6ZXI6c2VjcmV0"
        await way.close()


async def test_a_fresh_connection_serves_once_and_says_so():
    way = Way(OPTIONS, RouteOptions())
    async with Upstream() as model:
        await asked(way, model.replica())
        await asked(way, model.replica(), fresh_connection=True)
        await asked(way, model.replica())
        assert len(model.wires) == 2
        assert [request.head.get("Connection") for request in model.requests] == [None, "close", None]
        await model.wires[1].wait_closed()
        await way.close()


async def test_calls_are_live_until_the_last_byte_and_all_ends_with_the_close():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Length: 2")
        await wire.wait_closed()

    way = Way(OPTIONS, RouteOptions())
    async with Upstream(script) as model, Upstream() as other:
        call = await way.call("GET", model.replica(id="a"), "/x", CIMultiDict(), Nothing())
        await asked(way, other.replica(id="b"))
        assert way.live_calls() == {"a": 1}
        await way.close()
        assert way.live_calls() == {}
        await model.wires[0].wait_closed()
        await other.wires[0].wait_closed()
        with pytest.raises(CallBroke):
            _ = call.protocol


async def test_a_name_without_an_address_is_a_server_that_cannot_be_reached(monkeypatch):
    async def nobody(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    way = Way(OPTIONS, RouteOptions())
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", nobody, raising=False)
    with pytest.raises(CallBroke) as broken:
        await asked(way, Replica("r", "http://nowhere.invalid:1", 1))
    assert (broken.value.how, broken.value.can_be_repeated) == ("connect", True)
    await way.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full backlog refuses")
async def test_a_server_that_does_not_accept_is_given_up_in_time():
    way = Way(replace(OPTIONS, connect_timeout=0.1), RouteOptions())
    with ExitStack() as sockets:
        full = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        await asyncio.sleep(0.01)
        with pytest.raises(CallBroke) as broken:
            await asked(way, Replica("r", f"http://127.0.0.1:{full.getsockname()[1]}", 1))
    assert (broken.value.how, broken.value.executed) == ("connect", "no")
    await way.close()
