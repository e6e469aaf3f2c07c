"""On the wire: cases of other gateways that have no better place."""

import asyncio
import json
import os
import resource

import psutil
import pytest

from autoscaler.domain import Outcome
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from tests.fakes.client import Client
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing

KIB = 1024


def open_descriptors() -> int:
    return psutil.Process().num_fds()


async def test_s16_an_abortion_reaches_the_replica_that_runs_the_request_and_takes_no_slot():
    async def knows(wire: UpstreamWire, request: Received) -> None:
        if request.head.target == "/abort_request":
            await says(b"aborted")(wire, request)
        else:
            await wire.closed.wait()

    does_not_know = says(b"who?", status="404 Not Found")
    one, other = Upstream(knows), Upstream(does_not_know)
    async with one, other, front(one.replica(), other.replica()) as proxy:
        answer = await proxy.ask("/abort_request", b'{"rid": "r1"}')
        assert (answer.status, answer.body) == (200, b"aborted")
        assert answer.head.get("Content-Length") == "7"
        client = await proxy.client()
        client.ask("/v1/x")
        await proxy.until(busy=1)
        assert (await proxy.ask("/abort_request", b"{}")).status == 200  # also while all is busy
        client.close()
    assert [request.body for request in other.requests][:1] == [b'{"rid": "r1"}']


async def test_s16_with_nobody_there_or_nobody_answering_it_says_so():
    async with front() as proxy:
        assert (await proxy.ask("/abort_request", b"{}")).status == 503
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        asked = asyncio.create_task(proxy.ask("/abort_request", b"{}"))
        await model.got(1)
        model.wires[0].reset()
        assert (await asked).status == 502


async def test_a20_gaps_between_events_are_kept_and_nothing_is_held_back():
    """An event is passed on in the turn in which it comes, whatever the gap to the next."""
    gaps = [0.0, 0.03, 0.001, 0.02, 0.0, 0.03]

    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for gap in gaps:
            await asyncio.sleep(gap)
            said.append(asyncio.get_running_loop().time())
            wire.send_chunk(b"data: token\n\n")
        wire.send_chunk(b"")

    said: list[float] = []
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/v1/x", b'{"stream":true}')
        head = await client.head()
        assert head.get("X-Accel-Buffering") == "no"
        heard = []
        for _ in gaps:
            await client.event()
            heard.append(asyncio.get_running_loop().time())
        delays = [b - a for a, b in zip(said, heard, strict=True)]
        assert sorted(delays)[len(delays) // 2] < 0.005
        client.close()


async def test_k10_small_messages_are_not_held_back_to_fill_a_buffer():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        for n in range(20):
            wire.send_chunk(b"%010d" % n)
            await gate.wait()
            gate.clear()
        wire.send_chunk(b"")

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        for n in range(20):
            assert await client.chunk() == b"%010d" % n
            gate.set()
        assert await client.chunk() == b""
        client.close()


@pytest.mark.parametrize("name", ["caf\xe9.wav", "a.wav"])
async def test_p14_a_multipart_form_arrives_byte_for_byte(name):
    form = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode("latin-1") + b'"\r\n'
        b"Content-Type: audio/wav\r\n\r\n" + os.urandom(70 * KIB) + b"\r\n--b--\r\n"
    )
    async with Upstream() as model, front(model.replica()) as proxy:
        await proxy.ask("/v1/audio/transcriptions", form, "Content-Type: multipart/form-data; boundary=b")
    received = model.requests[0]
    assert received.body == form
    assert received.head.get("Content-Type") == "multipart/form-data; boundary=b"


async def test_t11_a_compressed_bomb_is_not_opened_and_many_small_chunks_are_taken():
    bomb = b"\x1f\x8b\x08\x00" + bytes(1000)  # neither valid nor small when it is inflated: not our business
    async with Upstream() as model, front(model.replica()) as proxy:
        assert (await proxy.ask("/v1/x", bomb, "Content-Encoding: gzip")).status == 200
        client = await proxy.client()
        client.ask("/v1/x", None, "Transfer-Encoding: chunked")
        for _ in range(20):
            client.send(b"1\r\nx\r\n" * 1000)
        client.send(b"0\r\n\r\n")
        assert (await client.answer()).status == 200
        client.close()
    assert model.requests[0].body == bomb
    assert model.requests[1].body == b"x" * 20_000


async def test_l10_e10_large_bodies_do_not_hold_up_the_loop():
    """20 MB of base64 pass while small requests are answered; nothing looks into them."""
    body = b'{"image": "' + b"A" * (20 * 1024 * KIB) + b'"}'
    async with Upstream() as model, front(model.replica(slots=2)) as proxy:
        large = asyncio.create_task(proxy.ask("/v1/x", body))
        loop, worst = asyncio.get_running_loop(), 0.0
        while not large.done():
            began = loop.time()
            assert (await proxy.ask("/v1/small", b"{}")).status == 200
            worst = max(worst, loop.time() - began)
        assert (await large).status == 200
        assert worst < 1.0  # parsing it once would be some 0.2 s of this loop, and the test shares it
    assert max(len(request.body) for request in model.requests) == len(body)


async def test_p6_l10_six_hundred_clients_at_once():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await says()(wire, request)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("this machine does not allow so many descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    async with Upstream(script) as model, front(model.replica(slots=64)) as proxy:
        clients = await asyncio.gather(*(proxy.client() for _ in range(600)))
        for client in clients:
            client.ask("/v1/x", b"{}")
        answers = await asyncio.gather(*(client.answer() for client in clients))
        assert {answer.status for answer in answers} == {200}
        for client in clients:
            client.close()


async def test_p12_without_a_replica_it_waits_and_then_says_503():
    async with front(route=RouteOptions(wait_timeout=0.1)) as proxy:
        answer = await proxy.ask()
        assert (answer.status, answer.json["error"]["code"]) == (503, "no_capacity")
        assert answer.head.get("Retry-After")


async def test_a25_e2_a_replica_that_vanishes_frees_its_slots_and_its_return_starts_at_nothing():
    async with Upstream(says_nothing) as model, front(model.replica(slots=2)) as proxy:
        clients = [await proxy.client() for _ in range(2)]
        for client in clients:
            client.ask("/v1/x", b"{}")
        await model.got(2)
        proxy.drive.replica_lost(model.replica().id)
        for wire in model.wires:
            wire.reset()
        for client in clients:
            assert (await client.answer()).status == 502
            client.close()
        model.script = says()
        proxy.drive.replica_ready(model.replica(slots=2, id="again"))
        assert proxy.drive.busy_slots() == {"again": 0}
        assert (await proxy.ask()).status == 200


async def test_s11_the_error_of_a_stream_is_json_that_an_sdk_parses_and_no_done_follows():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send_chunk(b'data: {"choices":[]}\n\n')
        await gate.wait()
        wire.close()

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/v1/chat/completions", b'{"stream":true}')
        await client.head()
        await client.event()
        gate.set()
        event = await client.event()
        error = json.loads(event.removeprefix("data: "))["error"]
        assert {"message", "type", "code"} <= set(error)
        rest = await client.rest()
        assert b"[DONE]" not in rest
        assert not rest.endswith(b"0\r\n\r\n")  # the body has no end: truncated looks truncated
        client.close()
        assert proxy.facts.outcomes == {Outcome.FAILED: 1}


async def test_extra_bytes_after_a_counted_answer_are_not_the_next_ones():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        )

    async with Upstream(script) as model, front(model.replica()) as proxy:
        for _ in range(3):
            answer = await proxy.ask()
            assert answer.body == b"ok" if answer.status == 200 else answer.status == 502
    assert len(model.wires) == 3, "a connection that said too much is not used again"


async def test_p4_l8_t17_requests_leave_no_descriptor_and_no_task_behind():
    async with Upstream() as model, front(model.replica(slots=8)) as proxy:
        for _ in range(20):
            await proxy.ask()
        await asyncio.sleep(0.05)
        before = (open_descriptors(), len(asyncio.all_tasks()))
        for _ in range(10):
            await asyncio.gather(*(proxy.ask() for _ in range(8)))
            gone = [await proxy.client() for _ in range(4)]
            for client in gone:
                client.ask()
                client.reset()
        await proxy.until(busy=0)
        async with asyncio.timeout(5):
            while len(asyncio.all_tasks()) > before[1] + 10 or proxy.server.in_flight:
                await asyncio.sleep(0.01)
        assert open_descriptors() < before[0] + 30  # idle connections to the server, at most


async def test_a17_p1_a_request_given_up_by_its_own_deadline_stops_the_server():
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        answer = await proxy.ask("/v1/x", b"{}", "X-Request-Timeout-Ms: 300")
        assert answer.status == 504
        async with asyncio.timeout(10):  # on a busy machine it may come after the deadline
            while not model.wires:
                await asyncio.sleep(0.01)
        await model.wires[0].wait_closed()
        assert proxy.facts.outcomes == {Outcome.EXPIRED: 1}


async def test_a_drip_of_a_body_is_bounded_in_all():
    options = ProxyOptions(port=0, body_timeout=0.3, body_rate_min=1000.0, linger=0.1)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        client: Client = await proxy.client()
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        began = asyncio.get_running_loop().time()
        while not client.closed.is_set() and b"408" not in client.buffer:
            client.send(b"x")  # never silent for long, and never fast enough
            await asyncio.sleep(0.02)
        assert asyncio.get_running_loop().time() - began < 5
        assert (await client.head()).status == 408
        client.close()
    assert model.requests == []
