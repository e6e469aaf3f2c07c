"""What each kind of model server is asked, against a real HTTP server on the loopback."""

import asyncio

import pytest
from aiohttp import web

from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton

HEALTHY = "/v2/health/ready"
MODELS = '{"object": "list", "data": [{"id": "llama", "object": "model"}, {"id": "org/phi"}]}'


class Upstream:
    """Answers each path as told, 404 otherwise; a status of 0 is silence."""

    def __init__(self):
        self.answers: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []
        self.client_ports: set[int] = set()
        self.released = asyncio.Event()

    async def handle(self, request):
        self.asked.append(request.raw_path)
        self.client_ports.add(request.transport.get_extra_info("peername")[1])
        status, body = self.answers.get(request.raw_path, (404, ""))
        if status == 0:
            await self.released.wait()
        return web.Response(status=status, text=body, headers={"Location": "/elsewhere"})


@pytest.fixture
async def upstream():
    upstream = Upstream()
    runner = web.ServerRunner(web.Server(upstream.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    yield upstream
    upstream.released.set()
    await runner.cleanup()


async def asks(server, url):
    try:
        return await server.ready(url)
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("status", "is_ready"), [(200, True), (204, True), (302, False), (400, False), (404, False), (503, False)]
)
async def test_plain_http_is_ready_with_any_2xx_and_nothing_else(upstream, status, is_ready):
    upstream.answers = {"/healthz": (status, ""), "/elsewhere": (200, "")}
    assert await asks(PlainHttp(), upstream.url) is is_ready
    assert upstream.asked == ["/healthz"]


async def test_plain_http_asks_the_path_it_was_given(upstream):
    upstream.answers = {"/up?deep=1": (200, "")}
    assert await asks(PlainHttp(ready_path="/up?deep=1"), upstream.url)


async def test_triton_not_ready_is_400(upstream):
    upstream.answers = {HEALTHY: (400, "")}
    assert not await asks(Triton(), upstream.url)
    upstream.answers = {HEALTHY: (200, "")}
    assert await asks(Triton(), upstream.url)


async def test_triton_is_ready_once_its_model_is(upstream):
    upstream.answers = {HEALTHY: (200, ""), "/v2/models/a%2Fb/ready": (400, "")}
    assert not await asks(Triton(model="a/b"), upstream.url)
    upstream.answers["/v2/models/a%2Fb/ready"] = (200, "")
    assert await asks(Triton(model="a/b"), upstream.url)


@pytest.mark.parametrize(
    ("models", "is_ready"),
    [
        ((200, MODELS), True),
        ((200, '{"data": [{"id": "other"}]}'), False),
        ((200, '{"data": null}'), False),
        ((200, "<html>"), False),
        ((500, MODELS), False),
    ],
)
async def test_openai_is_ready_once_it_lists_the_model(upstream, models, is_ready):
    upstream.answers = {"/health": (200, ""), "/v1/models": models}
    assert await asks(OpenAI(model="org/phi"), upstream.url) is is_ready


async def test_openai_lists_its_models_and_says_which_adapt_another(upstream):
    adapter = '{"id": "poet", "object": "model", "parent": "llama", "root": "/adapters/poet"}'
    upstream.answers = {"/v1/models": (200, f'{{"data": [{{"id": "llama", "parent": null}}, {adapter}]}}')}
    server = OpenAI()
    listed = await server.models(upstream.url)
    await server.close()
    assert [(each.name, each.parent) for each in listed] == [("llama", None), ("poet", "llama")]
    assert listed[1].said == adapter.encode()


DEEP = '{"data": [' + "[" * 100_000


@pytest.mark.parametrize(
    "answer", [(500, MODELS), (200, "[]"), (200, '{"data": [{"name": "x"}]}'), (200, DEEP)]
)
async def test_openai_that_lists_nothing_that_can_be_read_says_nothing(upstream, answer):
    upstream.answers = {"/v1/models": answer}
    server = OpenAI()
    assert await server.models(upstream.url) is None
    await server.close()


async def test_openai_is_put_to_sleep_and_woken_and_says_whether_it_sleeps(upstream):
    server = OpenAI()
    assert not await server.is_asleep(upstream.url)  # it knows no such path
    assert not await server.sleep(upstream.url)
    for said, wanted in (('{"is_sleeping": true}', True), ('{"is_sleeping": false}', False), ("yes", False)):
        upstream.answers = {"/is_sleeping": (200, said), "/sleep?level=1": (200, ""), "/wake_up": (200, "")}
        assert await server.is_asleep(upstream.url) is wanted
    assert await server.sleep(upstream.url)
    assert await server.wake(upstream.url)
    await server.close()


async def test_openai_without_a_model_is_asked_for_health_only(upstream):
    upstream.answers = {"/health": (200, "")}
    assert await asks(OpenAI(), upstream.url)
    assert upstream.asked == ["/health"]


@pytest.mark.parametrize(
    ("answers", "slots"),
    [
        ({"/props": (200, '{"total_slots": 16, "model_alias": "x"}')}, 16),  # llama.cpp
        ({"/server_info": (200, '{"max_running_requests": 40, "internal_states": []}')}, 40),  # SGLang
        (
            {
                "/props": (404, ""),
                "/get_server_info": (
                    200,
                    """{"max_running_requests": null, "internal_states": [
                       {"effective_max_running_requests_per_dp": 128, "memory_usage": {"weight": 1.0}},
                       {"effective_max_running_requests_per_dp": 128}]}""",
                ),
            },
            256,  # two schedulers
        ),
        ({"/props": (200, '{"total_slots": "many"}'), "/server_info": (200, "<html>")}, None),
        ({"/props": (200, "{}")}, None),
        ({}, None),  # vLLM
        ({"/props": (0, "")}, None),  # silence is not asked twice
    ],
)
async def test_openai_servers_tell_their_slots_as_far_as_they_do(upstream, answers, slots):
    upstream.answers = answers
    server = OpenAI(timeout=0.3)
    assert await server.slots(upstream.url) == slots
    await server.close()


async def test_a_plain_http_server_tells_no_slots(upstream):
    assert await PlainHttp().slots(upstream.url) is None
    assert upstream.asked == []


@pytest.mark.parametrize("kind", [PlainHttp, Triton, OpenAI])
async def test_nobody_there_is_a_no(kind, unused_tcp_port):
    assert not await asks(kind(), f"http://127.0.0.1:{unused_tcp_port}")


@pytest.mark.parametrize("kind", [PlainHttp, Triton, OpenAI])
async def test_silence_is_a_no_in_time(upstream, kind):
    upstream.answers = dict.fromkeys(["/healthz", HEALTHY, "/health"], (0, ""))
    async with asyncio.timeout(20):
        assert not await asks(kind(timeout=0.05), upstream.url)


async def test_an_answer_that_is_no_http_is_a_no():
    async def babble(reader, writer):
        await reader.readline()
        writer.write(b"220 mail ready\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        assert not await asks(PlainHttp(), f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_every_probe_takes_a_connection_of_its_own(upstream):
    upstream.answers = {"/healthz": (200, "")}
    server = PlainHttp()
    for _ in range(3):
        assert await server.ready(upstream.url)
    await server.close()
    assert len(upstream.client_ports) == 3


async def test_cancellation_passes_through(upstream):
    upstream.answers = {"/healthz": (0, "")}
    server = PlainHttp(timeout=30.0)
    asking = asyncio.create_task(server.ready(upstream.url))
    while not upstream.asked:
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await server.close()


async def test_after_close_the_answer_is_no(upstream):
    upstream.answers = {"/healthz": (200, "")}
    server = PlainHttp()
    assert await server.ready(upstream.url)
    await server.close()
    assert not await server.ready(upstream.url)


def test_a_path_without_slash_or_a_timeout_of_zero_is_refused():
    with pytest.raises(ValueError, match="starts with '/', got 'up'"):
        PlainHttp(ready_path="up")
    with pytest.raises(ValueError, match="timeout > 0 s, got 0"):
        Triton(timeout=0)
