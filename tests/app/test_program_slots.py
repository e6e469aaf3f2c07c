"""The whole program with `slots_per_replica: auto`: before a server of some workers, and before Triton."""

import asyncio
import time

import aiohttp
import pytest

from tests.app.test_program_dispatch import StaticProgram
from tests.fakes import triton_models as models
from tests.fakes.openai_server import SSE, chat_stream
from tests.fakes.program import Program
from tests.fakes.triton_server import command, needs_triton
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says

WORKERS, SECONDS = 3, 0.040


class Workers:
    """A server of so many workers; whoever finds none free waits inside."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(WORKERS)

    async def __call__(self, wire: UpstreamWire, request: Received) -> None:
        if request.head.method != "GET":
            async with self._free:
                await asyncio.sleep(SECONDS)
        await says(b"ok")(wire, request)


async def test_it_learns_how_many_a_server_does_well_with(tmp_path):
    async with Upstream(Workers()) as server:
        running = StaticProgram(
            tmp_path, server, slots="auto", auto_slots={"service_time": "120ms"}, queue={"wait_max": "1m"}
        )
        try:
            await running.start()
            assert (await running.until(lambda pool: True))["slots"]["total"] == 1
            found = await under_load(running, 24, lambda slots: 6 <= slots <= 11)
            assert found["slots"]["total"] == pytest.approx(WORKERS * 3, abs=3)  # 120 ms are three services
            shown = await running.until(lambda pool: pool["slots"]["per_replica"] >= 6)
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{running.admin}/metrics") as answer,
            ):
                metrics = await answer.text()
            assert f'autoscaler_slots_per_replica{{pool="pool"}} {shown["slots"]["per_replica"]}.0' in metrics
            assert await running.end() == 0
        finally:
            running.sweep()


class Chat:
    """A language model that takes 5 ms, and 2.5 ms for each of its answers, to make a token of all."""

    def __init__(self) -> None:
        self._answers = 0

    async def __call__(self, wire: UpstreamWire, request: Received) -> None:
        if request.head.method == "GET":
            await says()(wire, request)
            return
        self._answers += 1
        wire.send_head(*SSE)
        for event in chat_stream(list("abcdefghij")):
            wire.send_chunk(event)
            await asyncio.sleep(0.005 + 0.0025 * self._answers)
        wire.send(b"0\r\n\r\n")
        self._answers -= 1


async def test_it_learns_how_many_answers_get_their_tokens_in_time(tmp_path):
    async with Upstream(Chat()) as server:
        running = StaticProgram(
            tmp_path,
            server,
            slots="auto",
            server={"kind": "openai"},
            auto_slots={"token_time": "30ms"},
            queue={"wait_max": "2m"},
        )
        try:
            await running.start()
            url, body = f"{running.url}/v1/chat/completions", b'{"model": "base", "stream": true}'
            await under_load(running, 20, lambda slots: 6 <= slots <= 13, url, body)  # 10 keep 30 ms
            assert await running.end() == 0
        finally:
            running.sweep()


async def under_load(running, clients, are_right, url=None, body=b"{}"):
    """Keep so many requests in the program until the slots are right for two seconds; return the status."""

    async def ask(session):
        while True:
            async with session.post(url or running.url, data=body) as answer:
                assert answer.status == 200
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        asking = [asyncio.create_task(ask(session)) for _ in range(clients)]
        try:
            right_since = None
            async with asyncio.timeout(60):
                while right_since is None or time.monotonic() - right_since < 2.0:
                    status = (await running.get("/api/status"))["pools"][0]
                    right = are_right(status["slots"]["total"])
                    right_since = (right_since or time.monotonic()) if right else None
                    await asyncio.sleep(0.1)
            return status
        finally:
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


@needs_triton
@pytest.mark.parametrize(
    ("more", "slots"),
    [
        ("instance_group [{ kind: KIND_CPU, count: 3 }]", 3),
        ("dynamic_batching { } instance_group [{ kind: KIND_CPU, count: 2 }]", 2 * 8 + 8),
    ],
)
async def test_triton_is_asked_and_loads_the_model_that_is_named(tmp_path, more, slots):
    repository = tmp_path / "models"
    models.timed(repository, 0.005, 0.001, more=more)
    running = Program(
        tmp_path,
        command=command(repository),
        server={"kind": "triton", "model": "timed", "load_model": True, "batching": False},
        slots_per_replica="auto",
    )
    try:
        await running.start()
        await running.until(lambda pool: pool["slots"]["total"] == slots)
        await running.until(lambda pool: pool["slots"]["per_replica"] == slots)
        body = {"inputs": [{"name": "INPUT", "datatype": "FP32", "shape": [1, 1], "data": [2.0]}]}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{running.url}/v2/models/timed/infer", json=body) as answer,
        ):
            assert (await answer.json())["outputs"][0]["data"] == [2.0]
        assert await running.end() == 0
    finally:
        running.sweep()
