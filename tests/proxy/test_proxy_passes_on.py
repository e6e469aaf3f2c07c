"""On the wire: what comes in goes out as it came, both ways."""

import asyncio

import pytest

from autoscaler.proxy.options import ProxyOptions, RouteOptions
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says


async def test_a_request_and_its_answer_pass_unchanged_with_their_story():
    async with (
        Upstream(says(b"pong", "X-One: 1", "x-one: 2", "Server: model")) as model,
        front(model.replica()) as proxy,
    ):
        answer = await proxy.ask(
            "/v1/chat", b'{"model":"m"}', "X-Two: a", "x-two: b", "traceparent: 00-0a-0b-01"
        )
    seen = model.requests[0]
    assert (seen.head.start, seen.body) == ("POST /v1/chat HTTP/1.1", b'{"model":"m"}')
    assert [field for field in seen.head.fields if field[0].lower() not in ("host", "x-request-id")] == [
        ("X-Two", "a"), ("x-two", "b"), ("traceparent", "00-0a-0b-01"), ("Content-Length", "13"),
    ]  # fmt: skip
    assert seen.head.get("Host") == f"127.0.0.1:{model.port}"
    assert (answer.status, answer.body) == (200, b"pong")
    assert answer.head.fields[:4] == (
        ("X-One", "1"),
        ("x-one", "2"),
        ("Server", "model"),
        ("Content-Length", "4"),
    )
    assert answer.head.get("X-Request-Id") == seen.head.get("X-Request-Id")
    assert answer.head.get("Server-Timing").startswith("queue;dur=")
    assert "service;dur=" in answer.head.get("Server-Timing")


async def test_p9_no_field_comes_twice_that_a_server_and_a_proxy_both_add():
    date = "Date: Sun, 06 Nov 1994 08:49:37 GMT"
    async with (
        Upstream(says(b"x", date, "Server: s", "X-Request-Id: theirs")) as model,
        front(model.replica()) as proxy,
    ):
        answer = await proxy.ask("/v1/x", b"{}", "X-Request-Id: mine")
    assert answer.head.all("Date") == ["Sun, 06 Nov 1994 08:49:37 GMT"]
    assert answer.head.all("Server") == ["s"]
    assert answer.head.all("X-Request-Id") == ["theirs"]
    assert model.requests[0].head.all("X-Request-Id") == ["mine"]


async def test_nothing_is_added_that_the_server_did_not_say():
    async with Upstream(says(b"x")) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
    assert {name for name, _ in answer.head.fields} == {
        "Content-Length",
        "X-Request-Id",
        "Server-Timing",
        "Date",
    }


@pytest.mark.parametrize(
    "target", ["/v1/%7Euser/%2F..%2e?x=%7E&x=~", "/a/../b//c;d=1", '/v2/a"{}|?q="{}', "/x?a=1?b", "//host/x"]
)
async def test_a_path_is_passed_on_byte_for_byte(target):
    async with Upstream() as model, front(model.replica()) as proxy:
        await proxy.ask(target)
    assert model.requests[0].head.target == target


async def test_a_target_in_absolute_form_reaches_the_server_in_origin_form():
    async with Upstream() as model, front(model.replica()) as proxy:
        assert (await proxy.ask("http://front/v1/y?z")).status == 200
        assert (await proxy.ask("http://other/v1/y?z")).status == 400
    assert [request.head.target for request in model.requests] == ["/v1/y?z"]


@pytest.mark.parametrize("body", [b"{", b"", b"\x00\xff" * 1000, b'{"inputs":[]}' + bytes(range(256))])
async def test_p11_e9_bodies_are_opaque(body):
    async with Upstream() as model, front(model.replica()) as proxy:
        await proxy.ask("/v2/models/m/infer", body, "Inference-Header-Content-Length: 13")
    assert model.requests[0].body == body


@pytest.mark.parametrize("encoding", ["gzip", "gzip,gzip", "br", "nonsense"])
async def test_p7_a5_l7_encoded_bodies_pass_both_ways_undecoded(encoding):
    field = f"Content-Encoding: {encoding}"
    async with Upstream(says(b"\x1f\x8bnot really", field)) as model, front(model.replica()) as proxy:
        answer = await proxy.ask("/v1/x", b"\x1f\x8bneither", field)
    assert model.requests[0].body == b"\x1f\x8bneither"
    assert model.requests[0].head.all("Content-Encoding") == [encoding]
    assert (answer.body, answer.head.all("Content-Encoding")) == (b"\x1f\x8bnot really", [encoding])


@pytest.mark.parametrize("content_type", ["audio/wav", "application/json; charset=utf-8", "text/plain"])
async def test_p8_the_content_type_is_the_servers(content_type):
    async with (
        Upstream(says(b"RIFF", f"Content-Type: {content_type}")) as model,
        front(model.replica()) as proxy,
    ):
        assert (await proxy.ask()).head.all("Content-Type") == [content_type]


async def test_duplicate_set_cookie_redirects_and_reasons_are_not_ours_to_touch():
    script = says(
        b"", "Location: /elsewhere", "Set-Cookie: a=1", "Set-Cookie: b=2", status="301 Gone Fishing"
    )
    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
        await proxy.ask()
    assert answer.head.start == "HTTP/1.1 301 Gone Fishing"
    assert answer.head.all("Set-Cookie") == ["a=1", "b=2"]
    assert [request.head.get("Cookie") for request in model.requests] == [None, None]


@pytest.mark.parametrize(
    "method, status, length",
    [("HEAD", "200 OK", "1234"), ("GET", "304 Not Modified", None), ("GET", "204 No Content", None)],
)
async def test_answers_without_a_body_end_with_their_head(method, status, length):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*(["Content-Length: 1234"] if length else []), "ETag: x", status=status)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        for _ in range(2):  # the connection is not out of step after the first
            client.ask("/x", method=method)
            answer = await client.answer(method)
            assert f"{answer.status}" == status[:3]
            assert answer.head.get("Content-Length") == length
            assert answer.head.get("Transfer-Encoding") is None
            assert answer.head.get("ETag") == "x"
        client.close()


@pytest.mark.parametrize("fields", [("Content-Length: 3", "Transfer-Encoding: chunked")])
@pytest.mark.parametrize("order", [1, -1])
async def test_a9_an_answer_with_both_framings_is_refused(fields, order):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*fields[::order])
        wire.send(b"5\r\nhello\r\n0\r\n\r\n")

    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
        assert (answer.status, answer.head.get("X-Proxy-Reason")) == (502, "protocol")


async def test_informational_answers_come_before_the_final_one_as_many_as_there_are():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + b"HTTP/1.1 102 Processing\r\n\r\n" * 5)
        await says(b"done")(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        assert [(await client.head()).status for _ in range(6)] == [103] + [102] * 5
        assert (await client.answer()).body == b"done"
        client.close()


@pytest.mark.parametrize(
    "reason, passed", [(b"", ""), (b"Gr\xfc\xdfe", "OK"), (b"a\x01b", "OK"), (b"Fine", "Fine")]
)
async def test_a_reason_that_cannot_be_written_is_replaced_by_the_standard_one(reason, passed):
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(b"HTTP/1.1 200 " + reason + b"\r\nContent-Length: 2\r\n\r\nok")

    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
        assert (answer.body, answer.head.start) == (b"ok", f"HTTP/1.1 200 {passed}")


async def test_an_answer_that_ends_with_its_connection_is_whole():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
        wire.close()

    async with Upstream(script) as model, front(model.replica()) as proxy:
        answer = await proxy.ask()
    assert answer.body == b"all of it"
    assert answer.head.get("Connection") is None


async def test_http_1_0_clients_get_an_answer_that_ends_with_the_connection():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        wire.send_chunk(b"one")
        wire.send_chunk(b"two")
        wire.send_chunk(b"")

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(b"GET /x HTTP/1.0\r\n\r\n")
        head = await client.head()
        assert (head.get("Transfer-Encoding"), await client.rest()) == (None, b"onetwo")


async def test_events_pass_one_by_one_as_they_come():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for n in range(3):
            wire.send_chunk(b"data: %d\n\n" % n)
            await gate.wait()
            gate.clear()
        wire.send_chunk(b"")

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        head = await client.head()
        assert (head.get("X-Accel-Buffering"), head.get("Cache-Control")) == ("no", "no-transform")
        for n in range(3):
            assert await client.event() == f"data: {n}\n\n"  # the next is not said before this one is here
            gate.set()
        assert await client.chunk() == b""
        client.close()


async def test_a_head_is_passed_on_before_there_is_a_body():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Length: 2")
        await gate.wait()
        wire.send(b"ok")

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.ask()
        head = await client.head()
        gate.set()
        assert await client.body(head) == b"ok"
        client.close()


async def test_connections_are_used_again_on_both_sides():
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        for _ in range(5):
            client.ask()
            assert (await client.answer()).status == 200
        client.close()
    assert len(model.wires) == 1


async def test_pipelined_requests_are_answered_in_order():
    async def script(wire: UpstreamWire, request: Received) -> None:
        await says(request.head.target.encode())(wire, request)

    async with Upstream(script) as model, front(model.replica()) as proxy:
        client = await proxy.client()
        for n in range(4):
            client.ask(f"/{n}", method="GET")
        assert [(await client.answer()).body for _ in range(4)] == [b"/0", b"/1", b"/2", b"/3"]
        client.close()


async def test_p6_more_requests_at_once_than_any_hidden_pool_limit():
    async def script(wire: UpstreamWire, request: Received) -> None:
        if len(model.requests) == 150:
            all_here.set()
        await all_here.wait()
        await says()(wire, request)

    all_here = asyncio.Event()
    async with Upstream(script) as model, front(model.replica(slots=150)) as proxy:
        answers = await asyncio.gather(*(proxy.ask() for _ in range(150)))
    assert {answer.status for answer in answers} == {200}


async def test_s10_every_path_takes_a_slot_and_unknown_ones_go_nowhere():
    async with Upstream() as model, front(model.replica(), route=RouteOptions(prefix="/v1")) as proxy:
        assert (await proxy.ask("/v1/anything/at/all")).status == 200
        assert (await proxy.ask("/v10")).status == 404
        assert len(proxy.facts.service_times) == 1
    assert len(model.requests) == 1


def post(*fields: bytes, body: bytes = b"abc") -> bytes:
    return b"\r\n".join([b"POST /x HTTP/1.1", b"Host: a", *fields]) + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"GET /x\r\n\r\n", 400),
        (b"TRACE /x HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501),
        (b"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (
            b"POST /x HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc", 400),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\nHost: a\n\n", 400),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\nContent-Length: 2\r\n\r\n{}", 417),
        (post(b"Transfer-Encoding: chunked", b"Content-Length: 3"), 400),
        (post(b"Content-Length: 3", b"Content-Length: 3"), 400),
        (post(b"Content-Length: 3, 3"), 400),
        (post(b"Content-Length: 0x3"), 400),
        (post(b"Content-Length: -1"), 400),
        (post(b"Transfer-Encoding: xchunked"), 400),
        (post(b"Transfer-Encoding: chunked, identity"), 400),
        (post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), 400),
        (post(b"Transfer-Encoding: \x0bchunked"), 400),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (post(b"Transfer-Encoding: chunked", body=b"-1\r\n\r\n"), 400),
        (post(b"Transfer-Encoding: chunked", body=b"0x3\r\nabc\r\n0\r\n\r\n"), 400),
        (post(b"Transfer-Encoding: chunked", body=b"f" * 17 + b"\r\nabc\r\n0\r\n\r\n"), 400),
        (post(b"Transfer-Encoding: chunked", body=b"3\r\nabc0\r\n\r\n"), 400),
        (post(b"Transfer-Encoding: chunked", body=b"3\nabc\r\n0\r\n\r\n"), 400),
        (b"FOO /x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"get /x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http://b/y HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
    ],
)
async def test_what_no_server_shall_see_is_refused_and_the_server_sees_nothing(request_bytes, status):
    async with Upstream() as model, front(model.replica()) as proxy:
        client = await proxy.client()
        client.send(request_bytes)
        answer = await client.answer()
        assert answer.status == status
        assert answer.json  # a body that a machine can read
        client.close()
    assert model.requests == []


async def test_an_upgrade_that_is_only_offered_is_not_taken_up():
    async with Upstream() as model, front(model.replica()) as proxy:
        answer = await proxy.ask(
            "/v1/x", b"{}", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAM"
        )
        assert answer.status == 200
    assert model.requests[0].head.get("Upgrade") is None


async def test_a_head_that_drips_in_is_cut_off_and_an_idle_connection_is_not():
    options = ProxyOptions(port=0, head_timeout=0.15, linger=0.1)
    async with Upstream() as model, front(model.replica(), options=options) as proxy:
        idle, loris, mute = await proxy.client(), await proxy.client(), await proxy.client()
        for client in (idle, loris):
            client.ask()
            assert (await client.answer()).status == 200
        loris.send(b"POST /x HT")
        await loris.wait_closed()
        await mute.wait_closed()
        idle.ask()
        assert (await idle.answer()).status == 200
        idle.close()
