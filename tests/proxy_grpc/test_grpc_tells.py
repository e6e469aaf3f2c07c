"""What calls tell of themselves: to their clients, to the live table, to the log and to the audit."""

import asyncio
import json
import re

import grpc
import pytest

from autoscaler.dispatch import QueueOptions
from autoscaler.proxy.access_log import AccessLog, AccessLogOptions
from autoscaler.proxy.options import RouteOptions
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.options import TenantOptions
from tests.fakes.kserve import INFER, SERVICE, STREAM, KServe, asks_for, grpc_front, works_for_ever

REQUEST = asks_for("embed", b"x" * 100)
READY = f"{SERVICE}ServerReady"


async def trailers(call) -> dict[str, str]:
    return dict(await call.trailing_metadata())


# -- to the client


async def test_an_id_that_a_client_gives_is_passed_on_and_given_back():
    async with KServe() as server, grpc_front(server.replica()) as front:
        for path in (INFER, READY):
            call = front.call(REQUEST, path, metadata=(("x-request-id", "mine"),))
            assert (await trailers(call))["x-request-id"] == "mine"
    assert [received.all("x-request-id") for received in server.calls] == [["mine"], ["mine"]]


@pytest.mark.parametrize("given", [(), ("with space",), ("x" * 129,), ("two words", "second")])
async def test_a_call_without_an_id_that_can_be_taken_gets_one_that_no_other_has(given):
    metadata = tuple(("x-request-id", each) for each in given)
    async with KServe() as server, grpc_front(server.replica()) as front:
        told = [(await trailers(front.call(REQUEST, metadata=metadata)))["x-request-id"] for _ in range(2)]
    assert [received.all("x-request-id") for received in server.calls] == [[told[0]], [told[1]]]
    assert all(re.fullmatch(r"[0-9a-f]{16}", each) for each in told)
    assert told[0] != told[1]


async def test_what_the_server_says_of_the_id_and_of_its_time_stands():
    async def says(received, context):
        context.set_trailing_metadata((("x-request-id", "its own"), ("server-timing", "gpu;dur=3")))
        return b""

    async with KServe(says) as server, grpc_front(server.replica()) as front:
        told = list(await front.call(REQUEST).trailing_metadata())
    assert [value for key, value in told if key == "x-request-id"] == ["its own"]
    (first, ours) = [value for key, value in told if key == "server-timing"]
    assert first == "gpu;dur=3"
    assert ours.startswith("queue;dur=")


async def test_every_call_says_where_its_time_went():
    async def takes_60_ms(received, context):
        await asyncio.sleep(0.06)
        return b""

    async with KServe(takes_60_ms) as server, grpc_front(server.replica()) as front:
        calls = [front.call(REQUEST)]
        await front.until(busy=1)
        calls.append(front.call(REQUEST))
        told = [(await trailers(call))["server-timing"] for call in calls]
        times = [re.fullmatch(r"queue;dur=([\d.]+), service;dur=([\d.]+)", each) for each in told]
        (first_waited, _), (waited, served) = (tuple(map(float, each.groups())) for each in times if each)
        assert first_waited < 40 <= waited
        assert served >= 60
        assert (await trailers(front.call(b"", READY)))["server-timing"] == "queue;dur=0.0"


async def test_an_error_of_the_server_and_a_refusal_tell_the_same():
    async def refuses(received, context):
        await context.abort(grpc.StatusCode.NOT_FOUND, "no such model")

    async with (
        KServe(refuses) as server,
        grpc_front(server.replica(), queue=QueueOptions(requests_max=0)) as front,
    ):
        mine = (("x-request-id", "mine"),)
        told = await trailers(front.call(REQUEST, metadata=mine))
        assert told["x-request-id"] == "mine"
        assert "service;dur=" in told["server-timing"]
        told = await trailers(front.call(b"\xff", metadata=mine))
        assert (told["x-request-id"], told["x-refusal"]) == ("mine", "bad_message")
        assert told["server-timing"] == "queue;dur=0.0"


# -- to who looks on


async def test_the_live_table_says_where_each_call_stands():
    async def answers_once(received, context):
        await context.write(b"first")
        await asyncio.Event().wait()

    async with (
        KServe(works_for_ever, answers_once) as server,
        grpc_front(server.replica(slots=2)) as front,
    ):
        streams = front.stream()
        await streams.write(REQUEST)
        assert await streams.read() == b"first"
        calls = front.call(REQUEST, metadata=(("x-request-id", "one"), ("priority", "u=0")))
        await front.until(busy=2)
        waits = front.call(REQUEST)
        await front.until(waiting=1)
        reads = front.stream()
        asks = front.call(b"", f"{SERVICE}ServerMetadata")
        await server.got(3)
        async with asyncio.timeout(5):
            while len(table := front.server.live()) < 5:
                await asyncio.sleep(0.002)
        # Of two that come at the same time either may be the older one.
        assert sorted((live.path, live.state, live.replica) for live in table) == sorted(
            [
                (STREAM, "answering", server.replica().id),
                (INFER, "calling", server.replica().id),
                (INFER, "waiting", ""),
                (STREAM, "reading", ""),
                (f"{SERVICE}ServerMetadata", "calling", ""),
            ]
        )
        assert [live.age for live in table] == sorted((live.age for live in table), reverse=True)
        (one,) = [live for live in table if live.id == "one"]
        assert (one.method, one.pool, one.priority_class) == ("POST", "pool", "critical")
        for call in (streams, calls, waits, reads, asks):
            call.cancel()
        await front.check_nothing_is_left()
        assert front.server.live() == []


async def test_the_tenant_of_a_call_is_in_the_table():
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), tenants=TenantOptions(header="X-Team"), book=TenantBook()) as front,
    ):
        call = front.call(REQUEST, metadata=(("x-team", "blue"),))
        await server.got(1)
        assert [live.tenant for live in front.server.live()] == ["blue"]
        call.cancel()


# -- to the log


async def test_every_call_is_written_with_what_became_of_it(tmp_path):
    async def script(received, context):
        if b"slow" in received.message:
            await asyncio.Event().wait()
        if b"fails" in received.message:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
        return b"hello"

    log = AccessLog(AccessLogOptions(tmp_path / "access.log"))
    queue = QueueOptions(requests_max=0)
    async with KServe(script) as server, grpc_front(server.replica(), queue=queue, access_log=log) as front:
        await front.call(asks_for("m", b"works"), metadata=(("x-request-id", "mine"),))
        await front.call(asks_for("m", b"fails")).code()
        left = front.call(asks_for("m", b"slow"))
        await front.until(busy=1)
        refused = front.call(REQUEST)
        assert await refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        left.cancel()
        await front.until(busy=0)
        late = front.call(asks_for("m", b"slow"), timeout=0.1)
        assert await late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        stream = front.stream()
        await stream.write(REQUEST)
        await stream.read()
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        breaks = front.call(asks_for("m", b"slow"))
        await front.until(busy=1)
        await server.server.stop(0)
        assert await breaks.code() is grpc.StatusCode.UNAVAILABLE
        await front.check_nothing_is_left()
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    answered = lines[0]
    assert (answered["id"], answered["method"], answered["path"]) == ("mine", "POST", INFER)
    assert (answered["pool"], answered["replica"]) == ("pool", server.replica().id)
    assert answered["sent_bytes"] == 5
    assert answered["total_seconds"] >= answered["service_seconds"] > 0
    assert lines[-2]["sent_bytes"] == len(REQUEST)
    assert {(line["status"], line["code"], line["grpc_status"]) for line in lines} == {
        (200, "ok", "OK"),
        (400, "invalid_argument", "INVALID_ARGUMENT"),
        (429, "queue_full", "RESOURCE_EXHAUSTED"),
        (499, "client_left", "CANCELLED"),
        (502, "upstream_reset", "UNAVAILABLE"),
        (504, "deadline_exceeded", "DEADLINE_EXCEEDED"),
    }


# -- to the audit


async def test_calls_on_the_wire_are_counted_by_replica_and_questions_are_not():
    async with (
        KServe(works_for_ever, works_for_ever) as server,
        grpc_front(server.replica(slots=2, id="r"), route=RouteOptions()) as front,
    ):
        unary, stream = front.call(REQUEST), front.stream()
        await stream.write(REQUEST)
        question = front.call(b"", f"{SERVICE}ServerMetadata")
        await server.got(3)
        assert front.server.live_calls("pool") == {"r": 2}
        assert front.server.live_calls("another") == {}
        for call in (unary, stream, question):
            call.cancel()
        await front.until(busy=0)
        assert front.server.live_calls("pool") == {}


async def test_a_call_without_a_slot_is_found():
    """Made by hand here: the slot is given back while the call goes on."""
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        call = front.call(REQUEST)
        await server.got(1)
        front.drive.reconcile(front.server.live_calls("pool"))
        assert front.drive.snapshot().ledger_difference == 0
        (use,) = front.drive._uses.values()
        front.drive.give_up(use.grant)
        front.drive.reconcile(front.server.live_calls("pool"))
        assert front.drive.snapshot().ledger_difference == 1
        call.cancel()
