"""The whole program before OpenAI-compatible servers, asked through the client library of OpenAI."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import aiohttp
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.program import Program

SERVE = [sys.executable, "-m", "tests.fakes.chat_process", "--port", "{port}"]
LLAMA_SERVER = os.environ.get("LLAMA_SERVER", "")
LLAMA_MODEL = os.environ.get("LLAMA_MODEL", "")
HELLO = [{"role": "user", "content": "Hello there"}]


@pytest.fixture
def run_program(tmp_path):
    made = []

    def run(command=SERVE, **pool):
        server = {"kind": "openai", **pool.pop("server", {})}
        made.append(Program(tmp_path, command=command, server=server, **pool))
        return made[-1].start(ready=1 if pool.get("scaling", {}).get("replicas_min", 1) else 0)

    yield run
    for each in made:
        each.sweep()


def client_of(running):
    return openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="unused", max_retries=0)


async def metrics_of(running):
    """Return the samples of the program's metrics by name and the values of their labels but the pool's."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{running.admin}/metrics") as answer,
    ):
        families = text_string_to_metric_families(await answer.text())
        samples = [sample for family in families for sample in family.samples]
    return {
        (each.name, *(value for name, value in each.labels.items() if name != "pool")): each.value
        for each in samples
    }


async def words_of(stream):
    deltas = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]
    return [delta for delta in deltas if delta]


async def test_the_client_library_works_unchanged_and_its_tokens_are_told(run_program):
    running = await run_program()
    async with client_of(running) as client:
        whole = await client.chat.completions.create(model="base", messages=HELLO)
        assert whole.usage.completion_tokens == 5
        stream = await client.chat.completions.create(model="base", messages=HELLO, stream=True)
        assert await words_of(stream) == list("abcde")
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        stream = await client.chat.completions.create(model="base", messages=HELLO, **asked)
        assert [chunk async for chunk in stream][-1].usage.prompt_tokens == 9
    status = await running.until(lambda pool: pool["tokens"]["rate_out"])
    assert status["tokens"]["estimated"] == pytest.approx(1 / 3)
    assert 0 < status["tokens"]["per_token_p50"] < 1
    found = await metrics_of(running)
    assert found["autoscaler_tokens_total", "out"] == 15
    assert found["autoscaler_tokens_estimated_total", "out"] == 5
    assert found["autoscaler_time_to_first_token_seconds_count", "arrival"] == 2
    assert await running.end() == 0


async def test_models_and_adapters_are_listed_without_asking_a_server(run_program):
    running = await run_program(server={"model": "base", "models": ["writer"]})
    async with asyncio.timeout(20), client_of(running) as client:
        while [model.id async for model in await client.models.list()] != ["base", "writer", "poet"]:
            await asyncio.sleep(0.05)
        assert (await client.models.retrieve("poet")).model_extra["parent"] == "base"
        with pytest.raises(openai.NotFoundError, match="there is base, writer, poet"):
            await client.models.retrieve("nobody")
    assert await running.end() == 0


async def test_a_replica_sleeps_and_wakes_for_a_request(run_program):
    running = await run_program(
        server={"model": "base"},
        local={"sleepers_max": 1},
        scaling={"replicas_min": 0, "replicas_max": 1, "scale_down_hold": "1s"},
    )
    async with client_of(running) as client:
        await client.chat.completions.create(model="base", messages=HELLO)
        await running.until(lambda pool: pool["replicas"]["asleep"] == 1, timeout=90)
        whole = await client.chat.completions.create(model="base", messages=HELLO)
        assert whole.usage.completion_tokens == 5  # one that sleeps would answer 500
    assert await running.end() == 0


@pytest.mark.skipif(
    not (LLAMA_SERVER and shutil.which(LLAMA_SERVER) and Path(LLAMA_MODEL).is_file()),
    reason="no real server: LLAMA_SERVER names llama.cpp's llama-server, LLAMA_MODEL a model in GGUF",
)
async def test_a_real_llama_server_tells_its_tokens_models_and_requests(run_program):
    command = [LLAMA_SERVER, "-m", LLAMA_MODEL, "--host", "127.0.0.1", "--port", "{port}"]
    command += ["-np", "4", "-c", "4096", "-t", "1", "--metrics", "--no-webui", "--alias", "tiny"]
    running = await run_program(
        command,
        server={"model": "tiny"},
        slots_per_replica=4,
        signals={"engine": {"preset": "llama.cpp"}},
        scaling={"replicas_min": 1, "replicas_max": 1},
    )
    asked = {"model": "tiny", "messages": HELLO, "max_tokens": 16}
    async with client_of(running) as client:
        whole = await client.chat.completions.create(**asked)
        options = {"include_usage": True}
        stream = await client.chat.completions.create(**asked, stream=True, stream_options=options)
        last = [chunk async for chunk in stream][-1].usage
        stream = await client.chat.completions.create(**asked, stream=True)
        words = await words_of(stream)
        models = {model.id for model in (await client.models.list()).data}
    assert "tiny" in models
    told = await metrics_of(running)
    said_out = whole.usage.completion_tokens + last.completion_tokens
    assert told["autoscaler_tokens_total", "out"] == said_out + len(words)
    assert told["autoscaler_tokens_estimated_total", "out"] == len(words)
    assert told["autoscaler_tokens_total", "in"] >= whole.usage.prompt_tokens + last.prompt_tokens
    assert told["autoscaler_time_to_first_token_seconds_count", "slot"] == 2
    assert told["autoscaler_ledger_disagreements", "foreign_load"] == 0
    assert await running.end() == 0
