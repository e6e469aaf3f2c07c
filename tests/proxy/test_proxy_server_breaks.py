"""On the wire: the server refuses, resets, truncates, stalls, talks nonsense; the client is told so."""

import asyncio
import json

import pytest

from autoscaler.domain import Outcome
from autoscaler.ports import Replica
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from tests.fakes.client import Answer
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing

SSE = ("Content-Type: text/event-stream", "Transfer-Encoding: chunked")


async def refuses(slots: int = 1) -> Replica:
    """A replica whose port nobody listens at any more."""
    async with Upstream() as gone:
        return gone.replica(slots)


def told(answer: Answer) -> tuple[int, str | None, str | None]:
    return answer.status, answer.head.get("X-Proxy-Reason"), answer.head.get("X-Request-Executed")


async def test_a_refused_connection_is_tried_elsewhere_and_nobody_notices():
    async with Upstream(says(b"here")) as model, front(await refuses(8), model.replica()) as proxy:
        for _ in range(6):
            assert (await proxy.ask("/v1/x", bytes(10_000))).body == b"here"
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 6}
    assert [len(request.body) for request in model.requests] == [10_000] * 6


async def test_s15_a_retry_goes_to_another_replica_and_tries_are_bounded():
    dead = [await refuses(4) for _ in range(3)]
    async with front(*dead) as proxy:
        answer = await proxy.ask()
        assert told(answer) == (502, "connect", "no")
        assert proxy.facts.outcomes == {Outcome.FAILED: 1}
        assert proxy.drive.snapshot().slots == 0  # each was tried once and is left alone now
    options = ProxyOptions(port=0, retries_max=0)
    async with Upstream() as model, front(*dead, model.replica(), options=options) as proxy:
        assert told(await proxy.ask()) == (502, "connect", "no")
    assert model.requests == []


async def test_a_refused_request_waits_for_the_slot_of_another_replica():
    """A replica dies while all others are busy; what would have gone to it is served a little later."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        await asyncio.sleep(0.1)
        await says(b"served")(wire, request)

    async with Upstream(script) as model, front(await refuses(1), model.replica()) as proxy:
        answers = await asyncio.gather(*(proxy.ask() for _ in range(4)))
        assert [answer.body for answer in answers] == [b"served"] * 4
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 4}


async def test_a_streamed_body_survives_a_refused_connection_if_none_of_it_was_sent():
    options = ProxyOptions(port=0, body_spool_bytes=1024)
    async with Upstream() as model, front(await refuses(8), model.replica(), options=options) as proxy:
        for _ in range(3):
            assert (await proxy.ask("/v1/x", bytes(100_000))).status == 200
    assert [len(request.body) for request in model.requests] == [100_000] * 3


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "DELETE"])
async def test_a_connection_that_breaks_at_work_is_not_tried_again(method):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.reset()

    async with Upstream(script) as model, Upstream() as other, front(model.replica()) as proxy:
        answer = await proxy.ask(method=method)
        assert told(answer) == (502, "reset", "maybe")
        assert proxy.facts.outcomes == {Outcome.FAILED: 1}
    assert (len(model.requests), len(other.requests)) == (1, 0)


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
async def test_a17_a_used_connection_that_breaks_after_a_while_was_at_work(method):
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) == 1:
            await says()(wire, request)
        else:
            proxy.drive.replica_ready(other.replica())
            await asyncio.sleep(0.4)
            wire.reset()

    async with Upstream(script) as model, Upstream() as other, front(model.replica()) as proxy:
        assert (await proxy.ask(method=method)).status == 200
        assert told(await proxy.ask(method=method)) == (502, "reset", "maybe")
    assert (len(model.wires), len(other.requests)) == (1, 0)


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a2_a_stale_connection_is_noticed_and_the_request_sent_again_elsewhere(how):
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) == 1:
            await says()(wire, request)
        else:
            proxy.drive.replica_ready(other.replica())
            wire.reset() if how == "reset" else wire.close()  # as if its close and our request had crossed

    async with Upstream(script) as model, Upstream(says(b"other")) as other, front(model.replica()) as proxy:
        assert (await proxy.ask()).status == 200
        assert (await proxy.ask("/v1/x", b"body")).body == b"other"
    assert (len(model.wires), len(model.requests)) == (1, 2)
    assert [request.body for request in other.requests] == [b"body"]


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a2_a19_with_one_replica_the_request_is_sent_again_on_a_fresh_connection(how):
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) % 3 == 2:  # the second on each connection that is used again
            wire.reset() if how == "reset" else wire.close()
        else:
            await says(request.body)(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        bodies = [(await proxy.ask("/v1/x", b"%d" % n)).body for n in range(4)]
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 4}
    assert bodies == [b"0", b"1", b"2", b"3"]


async def test_a17_a_late_answer_is_504_and_the_request_was_executed_once():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await asyncio.sleep(0.3)
        await says()(wire, request)

    route = RouteOptions(first_byte_timeout=0.1)
    async with (
        Upstream(script) as model,
        Upstream() as other,
        front(model.replica(), route=route) as proxy,
    ):
        answer = await proxy.ask("/v1/x", b"{}")
        assert told(answer) == (504, None, "maybe")
        assert proxy.facts.outcomes == {Outcome.EXPIRED: 1}
        await model.wires[0].wait_closed()
    assert (len(model.requests), len(other.requests)) == (1, 0)


async def test_a18_without_a_limit_a_long_prefill_is_waited_for():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await asyncio.sleep(0.3)
        await says(b"at last")(wire, request)

    route = RouteOptions(first_byte_timeout=None, idle_timeout=0.1)
    async with Upstream(script) as model, front(model.replica(), route=route) as proxy:
        assert (await proxy.ask()).body == b"at last"


async def test_p2_a_server_that_is_mute_hurts_nobody_else():
    route = RouteOptions(first_byte_timeout=0.3)
    async with (
        Upstream(says_nothing) as mute,
        Upstream() as model,
        front(mute.replica(), model.replica(), route=route) as proxy,
    ):
        first = asyncio.create_task(proxy.ask())
        await mute.got(1)
        assert {(await proxy.ask()).status for _ in range(5)} == {200}
        assert told(await first) == (504, None, "maybe")


@pytest.mark.parametrize("head", [("Content-Length: 10",), ("Transfer-Encoding: chunked",), SSE])
async def test_an_answer_that_breaks_off_looks_broken(head):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*head)
        await head_seen.wait()
        wire.send(b"5\r\nhello\r\n" if "chunked" in head[-1] else b"hello")
        await body_seen.wait()
        wire.close()

    head_seen, body_seen = asyncio.Event(), asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        assert (await client.head()).status == 200
        head_seen.set()
        await client.until(b"hello")
        body_seen.set()
        rest = await client.rest()
        assert b"0\r\n\r\n" not in rest  # no end, and nothing that could pass for one
        assert proxy.facts.outcomes == {Outcome.FAILED: 1}


async def test_an_answer_that_is_short_from_the_start_is_502_while_there_is_still_time():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        wire.close()

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        try:
            answer = await client.answer()
            assert told(answer) == (502, "truncated", "maybe")
        except EOFError as short:  # the head was on its way before the end came
            assert b"0\r\n\r\n" not in short.args[0]
        client.close()


async def test_http_1_0_has_no_other_way_to_tell_than_a_reset():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        wire.send_chunk(b"hello")
        await seen.wait()
        wire.close()

    seen = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(b"GET /x HTTP/1.0\r\n\r\n")
        await client.until(b"hello")
        seen.set()
        await client.wait_closed()
        assert client.was_reset


@pytest.mark.parametrize("ending", [b"\n\n", b"\r\n\r\n"])
async def test_s11_a_stream_that_breaks_between_events_ends_with_one_that_is_valid_json(ending):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*SSE)
        wire.send_chunk(b'data: {"token":1}' + ending)
        await seen.wait()
        wire.reset()

    seen = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        await client.event()
        seen.set()
        event = await client.event()
        assert event.startswith("data: ")
        assert event.endswith("\n\n")
        error = json.loads(event.removeprefix("data: "))["error"]
        assert (error["type"], error["code"]) == ("server_error", "upstream_truncated")
        assert await client.rest() == b""  # no [DONE], no last chunk


async def test_s11_a_stream_that_breaks_in_mid_event_is_not_made_a_valid_lie():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*SSE)
        wire.send_chunk(b'data: {"tok')
        await seen.wait()
        wire.reset()

    seen = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        assert await client.event() == 'data: {"tok'
        seen.set()
        assert await client.rest() == b""


async def test_a_stream_that_falls_silent_is_ended_and_told_so():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*SSE)
        wire.send_chunk(b"data: 1\n\n")
        await wire.wait_closed()

    route = RouteOptions(idle_timeout=0.1)
    async with Upstream(script) as model, front(model.replica(), route=route) as proxy:
        client = await proxy.client()
        client.ask()
        await client.head()
        await client.event()
        error = json.loads((await client.event()).removeprefix("data: "))["error"]
        assert error["code"] == "upstream_timeout"
        assert await client.rest() == b""
        assert proxy.facts.outcomes == {Outcome.EXPIRED: 1}


async def test_a_slow_client_is_not_mistaken_for_a_silent_server():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(f"Content-Length: {size}")
        wire.send(bytes(size))

    size = 16 * 2**20
    route = RouteOptions(idle_timeout=0.1)
    async with Upstream(script) as model, front(model.replica(), route=route) as proxy:
        client = await proxy.client(receive_buffer=16 * 1024)
        client.ask()
        await client.head()
        client.transport.pause_reading()
        await asyncio.sleep(0.3)
        client.transport.resume_reading()
        assert len(await client.exactly(size)) == size
        client.close()


@pytest.mark.parametrize(
    "nonsense, reason",
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "protocol"),
        (
            b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            "protocol",
        ),
        (b"HTTP/1.1 200 OK\r\nX-Half: a he", "truncated"),
        (b"", "reset"),
    ],
)
async def test_an_answer_that_is_none_is_502_with_its_reason(nonsense, reason):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(nonsense)
        wire.close()

    async with Upstream(script) as model, front(model.replica()) as proxy:
        assert told(await proxy.ask()) == (502, reason, "maybe")
        model.script = says(b"well again")
        assert (await proxy.ask()).body == b"well again"


async def test_a_head_that_is_larger_than_clients_may_send_passes():
    fields = [f"X-{n}: {'v' * 100}" for n in range(150)] + ["X-Long: " + "v" * 20_000]
    async with Upstream(says(b"x", *fields)) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
    assert len(answer.head.get("X-Long") or "") == 20_000
    assert answer.head.get("X-149") is not None


@pytest.mark.parametrize("status", ["400 Bad Request", "429 Too Many Requests", "500 Oops", "503 Busy"])
async def test_s1_what_the_server_says_is_its_answer_whatever_it_says(status):
    script = says(b"no", "Retry-After: 1", status=status)
    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
        assert (answer.head.start, answer.body) == (f"HTTP/1.1 {status}", b"no")
        assert answer.head.get("Retry-After") == "1"
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 1}


async def test_a_replica_that_dies_takes_only_what_ran_on_it():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says()(wire, request)

    gate = asyncio.Event()
    async with (
        Upstream(says_nothing) as dying,
        Upstream(script) as model,
        front(dying.replica(2), model.replica(2)) as proxy,
    ):
        asked = [asyncio.create_task(proxy.ask("/v1/x", b"{}")) for _ in range(8)]
        await proxy.until(busy=4, waiting=4)
        await dying.got(2)
        dying.stop_listening()
        for wire in dying.wires:
            wire.reset()
        proxy.drive.replica_lost(dying.replica().id)
        await proxy.until(busy=2, waiting=4)
        gate.set()
        answers = await asyncio.gather(*asked)
        assert [told(answer) for answer in answers if answer.status != 200] == [(502, "reset", "maybe")] * 2
        assert proxy.drive.snapshot().slots == 2
