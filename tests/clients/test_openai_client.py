"""The `openai` library works before the proxy as before a server of language models.

Against a small scripted server; and against a real llama.cpp where `LLAMA_SERVER` names its `llama-server`
and `LLAMA_MODEL` a GGUF file.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from autoscaler.dispatch import QueueOptions
from autoscaler.domain import Outcome
from autoscaler.ports import Replica
from load.free_port import free_port
from tests.fakes.front import Front, front
from tests.fakes.openai_server import DONE, SSE, chat_body, chat_stream, event, listing, streams, usage
from tests.fakes.upstream import Received, Script, Upstream, UpstreamWire, says, says_nothing

QUESTION = [{"role": "user", "content": "Where is the room?"}]
WORDS = ["Second ", "floor, ", "left ✓"]
JSON = "Content-Type: application/json"


async def model(wire: UpstreamWire, request: Received) -> None:
    """Speaks the API: the model `small`, and models that are named after what is wrong with them."""
    target, asked = request.head.target, json.loads(request.body or b"{}")
    await _answer(target, asked)(wire, request)


def _answer(target: str, asked: dict) -> Script:
    if target == "/v1/models":
        return says(listing("small"), JSON)
    if (wrong := _WRONG.get(asked["model"])) is not None:
        status, kind, *fields = wrong
        body = {"error": {"message": f"It is {kind}.", "type": kind, "param": "model", "code": kind}}
        return says(json.dumps(body).encode(), JSON, *fields, status=status)
    if asked["model"] == "endless":
        return for_ever
    if target == "/v1/completions":
        choice = {"index": 0, "text": "".join(WORDS), "finish_reason": "stop", "logprobs": None}
        body = {"id": "c", "object": "text_completion", "created": 1, "model": "small", "choices": [choice]}
        return (
            streams([event(**body), DONE]) if asked.get("stream") else says(json.dumps(body).encode(), JSON)
        )
    told = usage(7, 3)
    if asked.get("stream"):
        wants_usage = asked.get("stream_options", {}).get("include_usage")
        return streams(chat_stream(WORDS, told if wants_usage else None))
    return says(chat_body("".join(WORDS), told), JSON, "X-Model-Version: 7")


_WRONG = {
    "busy": ("429 Too Many Requests", "rate_limit_exceeded", "Retry-After: 1"),
    "down": ("503 Service Unavailable", "overloaded"),
    "wrong": ("400 Bad Request", "invalid_request_error"),
    "unknown": ("404 Not Found", "model_not_found"),
    "broken": ("500 Internal Server Error", "internal_error"),
}


async def for_ever(wire: UpstreamWire, request: Received) -> None:
    wire.send_head(*SSE)
    for piece in chat_stream(["word "])[:2]:
        wire.send_chunk(piece)
    await wire.closed.wait()


@asynccontextmanager
async def talking(
    *, script: Script = model, slots: int = 4, queue: QueueOptions | None = None, **options
) -> AsyncIterator[tuple[AsyncOpenAI, Front, Upstream]]:
    """A client that tries nothing twice by itself, the proxy, and the server."""
    async with Upstream(script) as server, front(server.replica(slots=slots), queue=queue) as proxy:
        base = f"http://127.0.0.1:{proxy.port}/v1"
        async with AsyncOpenAI(base_url=base, api_key="key", max_retries=0, **options) as client:
            yield client, proxy, server


# -- answers


async def test_models_are_listed():
    async with talking() as (client, _, _):
        assert [each.id async for each in client.models.list()] == ["small"]


async def test_a_chat_is_answered_in_one_piece_and_as_a_stream():
    async with talking() as (client, _, _):
        whole = await client.chat.completions.create(model="small", messages=QUESTION)
        assert whole.choices[0].message.content == "".join(WORDS)
        assert whole.usage is not None and whole.usage.total_tokens == 10
        stream = await client.chat.completions.create(
            model="small", messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [word for word in said if word] == WORDS
    assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens == 3


async def test_a_completion_is_answered_in_one_piece_and_as_a_stream():
    async with talking() as (client, _, _):
        whole = await client.completions.create(model="small", prompt="Where?")
        assert whole.choices[0].text == "".join(WORDS)
        stream = await client.completions.create(model="small", prompt="Where?", stream=True)
        assert [chunk.choices[0].text async for chunk in stream] == ["".join(WORDS)]


async def test_the_client_that_blocks_works_as_well():
    async with talking() as (_, proxy, _):

        def ask() -> str | None:
            with OpenAI(base_url=f"http://127.0.0.1:{proxy.port}/v1", api_key="key") as client:
                return (
                    client.chat.completions.create(model="small", messages=QUESTION)
                    .choices[0]
                    .message.content
                )

        assert await asyncio.to_thread(ask) == "".join(WORDS)


async def test_what_the_proxy_tells_is_in_the_raw_response():
    async with talking() as (client, _, server):
        raw = await client.chat.completions.with_raw_response.create(
            model="small", messages=QUESTION, extra_headers={"X-Request-Id": "mine"}
        )
        assert raw.headers["x-request-id"] == "mine"
        assert raw.headers["server-timing"].startswith("queue;dur=")
        assert raw.headers["x-model-version"] == "7"
        assert raw.parse().choices[0].message.content == "".join(WORDS)
        assert server.requests[0].head.get("Authorization") == "Bearer key"


# -- errors


@pytest.mark.parametrize(
    "name, kind",
    [
        ("busy", openai.RateLimitError),
        ("down", openai.InternalServerError),
        ("wrong", openai.BadRequestError),
        ("unknown", openai.NotFoundError),
        ("broken", openai.InternalServerError),
    ],
)
async def test_errors_of_the_server_are_the_librarys_own_classes(name, kind):
    async with talking() as (client, _, _):
        with pytest.raises(kind) as refused:
            await client.chat.completions.create(model=name, messages=QUESTION)
        assert refused.value.code == _WRONG[name][1]
        assert refused.value.param == "model"


async def test_a_full_queue_is_a_rate_limit_error_that_says_when_to_come_back():
    async with talking(slots=1, queue=QueueOptions(requests_max=0)) as (client, proxy, _):
        stream = await client.chat.completions.create(model="endless", messages=QUESTION, stream=True)
        with pytest.raises(openai.RateLimitError) as refused:
            await client.chat.completions.create(model="small", messages=QUESTION)
        assert refused.value.code == "queue_full"
        assert int(refused.value.response.headers["retry-after"]) >= 1
        await stream.close()
        await proxy.until(busy=0)


async def test_a_server_that_is_gone_is_a_server_error():
    async with talking(script=_hangs_up) as (client, _, _):
        with pytest.raises(openai.InternalServerError) as refused:
            await client.chat.completions.create(model="small", messages=QUESTION)
        assert refused.value.status_code == 502


async def _hangs_up(wire: UpstreamWire, request: Received) -> None:
    wire.reset()


async def test_a_stream_that_breaks_off_is_an_error_and_not_an_end():
    async def breaks_off(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*SSE)
        wire.send_chunk(chat_stream(WORDS)[1])
        await asyncio.sleep(0.05)
        wire.reset()

    async with talking(script=breaks_off) as (client, _, _):
        stream = await client.chat.completions.create(model="small", messages=QUESTION, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass


# -- who leaves


async def test_who_leaves_in_the_middle_of_a_stream_frees_the_slot():
    async with talking(slots=1) as (client, proxy, server):
        stream = await client.chat.completions.create(model="endless", messages=QUESTION, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        assert proxy.drive.snapshot().busy == 1
        await stream.close()
        await proxy.until(busy=0)
        await server.wires[0].wait_closed()
        assert proxy.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_who_does_not_wait_frees_the_slot():
    async with talking(script=says_nothing, slots=1, timeout=0.2) as (client, proxy, server):
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(model="small", messages=QUESTION)
        await proxy.until(busy=0)
        await server.wires[0].wait_closed()


# -- a real server


@asynccontextmanager
async def llama() -> AsyncIterator[Replica]:
    binary, weights = os.environ.get("LLAMA_SERVER"), os.environ.get("LLAMA_MODEL")
    if not binary or not weights:
        pytest.skip("no llama.cpp: set LLAMA_SERVER to its llama-server and LLAMA_MODEL to a GGUF file")
    port = free_port()
    where = ["--host", "127.0.0.1", "--port", str(port)]
    server = await asyncio.create_subprocess_exec(
        binary, "-m", weights, *where, "-np", "2", "-c", "1024", "-t", "1", stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60):
            while not await _is_well(port):
                assert server.returncode is None, "llama-server did not start"
                await asyncio.sleep(0.05)
        yield Replica("llama", f"http://127.0.0.1:{port}", 2)
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await server.wait()


async def _is_well(port: int) -> bool:
    with suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, family=socket.AF_INET)
        writer.write(b"GET /health HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"HTTP/1.1 200") or answer.startswith(b"HTTP/1.0 200")
    return False


async def test_a_real_llama_server_streams_through_the_proxy():
    async with (
        llama() as replica,
        front(replica) as proxy,
        AsyncOpenAI(base_url=f"http://127.0.0.1:{proxy.port}/v1", api_key="key", max_retries=0) as client,
    ):
        assert [each async for each in client.models.list()]
        whole = await client.chat.completions.create(model="any", messages=QUESTION, max_tokens=8)
        assert whole.usage is not None and whole.usage.completion_tokens > 0
        stream = await client.chat.completions.create(
            model="any", messages=QUESTION, max_tokens=8, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert len(chunks) > 1
        long = await client.chat.completions.create(
            model="any", messages=QUESTION, max_tokens=900, stream=True
        )
        await anext(aiter(long))
        await long.close()
        await proxy.until(busy=0)
