"""On the wire: what stands at the edge of the protocol, on either side."""

import asyncio

import pytest

from autoscaler.domain import Outcome
from autoscaler.proxy.options import ProxyOptions
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing

# -- clients


async def test_a_content_length_in_a_trailer_is_refused():
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(
            b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\nContent-Length: 7\r\n\r\n"
        )
        assert (await client.answer()).status == 400
        client.close()
    assert model.requests == []


@pytest.mark.parametrize("asks, end", [("TE: trailers", b"0\r\nX-Sum: 1\r\n\r\n"), ("A: b", b"0\r\n\r\n")])
async def test_trailers_of_a_server_go_to_who_takes_them_and_those_of_clients_to_nobody(asks, end):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked", "Trailer: X-Sum")
        wire.send_chunk(b"ok")
        wire.send(b"0\r\nX-Sum: 1\r\nContent-Type: text/html\r\n\r\n")

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(
            b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
            + f"Trailer: X-Sum\r\n{asks}\r\n\r\n".encode()
            + b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"
        )
        head = await client.head()
        assert (head.status, head.get("Trailer")) == (200, None)
        assert await client.rest() == b"2\r\nok\r\n" + end
    sent = model.requests[0].head
    assert (sent.get("Trailer"), sent.get("TE"), sent.get("X-Sum")) == (None, None, None)
    assert model.requests[0].body == b"abc"


async def test_a_client_that_closes_its_sending_half_is_taken_for_gone():
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        await model.got(1)
        client.transport.write_eof()
        await model.wires[0].wait_closed()
        await proxy.until(busy=0)
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}
        client.close()


async def test_who_sends_far_ahead_of_the_answers_gets_the_one_that_is_due_and_the_end():
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
        answer = await client.answer("GET")
        assert (answer.status, answer.head.get("Connection")) == (200, "close")
        await client.wait_closed()
        client.close()
    assert len(model.requests) == 1


async def test_who_sends_far_ahead_and_leaves_is_noticed():
    async with Upstream(says_nothing) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        await model.got(1)
        client.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
        await asyncio.sleep(0.05)
        client.close()
        await model.wires[0].wait_closed()
        await proxy.until(busy=0)


async def test_one_address_has_no_more_connections_than_it_may(caplog):
    options = ProxyOptions(port=0, linger=0.1, connections_per_client_max=2)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        first, second = await proxy.client(), await proxy.client()
        third = await proxy.client()
        answer = await third.answer()
        assert (answer.status, answer.json["code"]) == (503, "too_many_connections")
        first.close()
        async with asyncio.timeout(5):
            while len(proxy.server._server.connections) > 1:
                await asyncio.sleep(0.002)
        assert (await proxy.ask()).status == 200
        second.close()
    assert "connections_per_client_max" in caplog.text


# -- servers


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\nX-Long: one two\nContent-Length: 2\n\nok",
    ],
    ids=["obs-fold", "bare LF"],
)
async def test_a_head_in_an_obsolete_form_is_passed_on_in_the_form_that_all_read(raw):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(raw)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask("/x", method="GET")
        head = await client.until(b"\r\n\r\n")
        assert b"\r\nX-Long: one two\r\n" in head
        assert head.count(b"\n") == head.count(b"\r\n")
        assert await client.exactly(2) == b"ok"
        client.close()


async def test_a_value_that_is_no_utf8_arrives_transcoded_both_ways():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nContent-Length: 0\r\n\r\n")

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(b"GET /x HTTP/1.1\r\nHost: a\r\nX-Name: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\n\r\n")
        head = await client.head()
        assert head.get("X-Name") == b"caf\xc3\xa9".decode("latin-1")  # as the test's parser reads it
        client.close()
    sent = model.requests[0].head
    assert sent.get("X-Name") == sent.get("X-Utf8") == b"caf\xc3\xa9".decode("latin-1")


@pytest.mark.parametrize("pause, status", [(0.0, 502), (0.05, 200)])
async def test_an_answer_that_is_longer_than_it_said_is_never_passed_on_so(pause, status):
    """What comes at once with it spoils it; what comes later is thrown away with its connection."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Length: 3")
        wire.send(b"abc" if pause else b"abcde")
        if pause:
            await asyncio.sleep(pause)
            wire.send(b"de")

    async with Upstream(script) as model, front(model.replica()) as proxy:
        first = await proxy.ask("/x", method="GET", body=None)
        assert first.status == status
        assert first.body == b"abc" or first.head.get("X-Proxy-Reason") == "protocol"
        await model.wires[0].wait_closed()
        model.script = says(b"next")
        assert (await proxy.ask("/x", method="GET", body=None)).body == b"next"
    assert len(model.wires) == 2
