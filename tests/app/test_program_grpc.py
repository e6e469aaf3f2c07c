"""The whole program before real Triton servers over gRPC, asked by Triton's own client."""

import asyncio
import sys
from pathlib import Path

import grpc
import numpy as np
import psutil
import pytest
import tritonclient.grpc.aio as triton
import yaml
from tritonclient.utils import InferenceServerException

from load.free_port import free_port
from load.triton.install import is_installed
from tests.fakes.program import Program

HOME = Path(__file__).parents[2] / ".triton"
SERVE = [
    *(sys.executable, "-m", "load.triton", "serve", "--home", str(HOME)),
    *("--port", "{port}", "--grpc-port", "{grpc_port}"),
]

pytestmark = pytest.mark.skipif(
    not is_installed(HOME), reason="Triton is not installed; `make triton` does it"
)


class GrpcProgram(Program):
    """The program with two Triton replicas, and a gRPC listener on a free port."""

    def __init__(self, folder: Path, **triton_options: str) -> None:
        options = [word for name, value in triton_options.items() for word in (name, value)]
        super().__init__(
            folder,
            command=[*SERVE, *options],
            server={"kind": "triton", "model": "embed"},
            scaling={"replicas_min": 2, "replicas_max": 2},
        )
        self.grpc = free_port()
        settings = yaml.safe_load(self.config.read_text())
        settings["grpc"] = {"listen": f"127.0.0.1:{self.grpc}"}
        self.config.write_text(yaml.safe_dump(settings))

    def grpc_ports_of_replicas(self) -> list[int]:
        return [port for replica in self.replicas() if (port := _grpc_port(replica))]


def _grpc_port(process: psutil.Process) -> int | None:
    ports = [word.partition("=")[2] for word in process.cmdline() if word.startswith("--grpc-port=")]
    return int(ports[0]) if ports else None


def text(words: str) -> triton.InferInput:
    tensor = triton.InferInput("TEXT", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[words.encode()]], dtype=object))
    return tensor


async def answer_of(port: int, words: str) -> bytes:
    async with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        result = await client.infer("embed", [text(words)], request_id="7")
        return result.get_response().SerializeToString(deterministic=True)


async def test_what_tritons_client_gets_through_the_program_is_what_triton_says(tmp_path):
    running = GrpcProgram(tmp_path)
    try:
        await running.start(ready=2)
        direct = running.grpc_ports_of_replicas()
        assert len(direct) == 2
        answers = [
            await answer_of(port, "A quiet room, please.") for port in (running.grpc, running.grpc, *direct)
        ]
        assert len(answers[0]) > 4 * 384
        assert all(answer == answers[0] for answer in answers)

        async with triton.InferenceServerClient(f"127.0.0.1:{running.grpc}") as client:
            assert await client.is_server_live()
            assert await client.is_server_ready()
            assert await client.is_model_ready("embed")
            assert not await client.is_model_ready("none")
            assert (await client.get_server_metadata()).name == "triton"
            assert (await client.get_model_config("embed")).config.max_batch_size == 32
            told = []
            for port in (running.grpc, direct[0]):
                async with triton.InferenceServerClient(f"127.0.0.1:{port}") as asked:
                    with pytest.raises(InferenceServerException) as refused:
                        await asked.infer("none", [text("x")])
                    told.append((refused.value.status(), refused.value.message()))
            assert told[0] == told[1]  # Triton's own words, passed on
            streamed = await _stream(client, ["one", "two", "three"])
            assert streamed == [await _embedding(direct[0], words) for words in ("one", "two", "three")]
        assert await running.end() == 0
    finally:
        running.sweep()


async def test_a_call_that_is_cancelled_leaves_the_queue_and_a_drain_waits_for_the_others(
    tmp_path,
):
    running = GrpcProgram(tmp_path, **{"--service-time": "0.8"})
    try:
        await running.start(ready=2)
        async with triton.InferenceServerClient(f"127.0.0.1:{running.grpc}") as client:
            calls = [asyncio.create_task(client.infer("embed", [text(str(n))])) for n in range(3)]
            await running.until(lambda pool: pool["slots"]["busy"] == 2 and pool["queue_depth"] == 1)
            calls[2].cancel()
            await running.until(lambda pool: pool["queue_depth"] == 0)
            ending = asyncio.create_task(running.end())
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(result) for result in results[:2]] == [triton.InferResult] * 2
            assert await ending == 0
    finally:
        running.sweep()


async def test_a_deadline_that_passes_in_a_real_server_is_told_and_frees_the_slot(tmp_path):
    running = GrpcProgram(tmp_path, **{"--service-time": "5"})
    try:
        await running.start(ready=2)
        async with triton.InferenceServerClient(f"127.0.0.1:{running.grpc}") as client:
            with pytest.raises(InferenceServerException) as late:
                await client.infer("embed", [text("x")], client_timeout=0.3)
            assert late.value.status() == str(grpc.StatusCode.DEADLINE_EXCEEDED)
            await running.until(lambda pool: pool["slots"]["busy"] == 0)
            assert (await running.until(lambda pool: True))["slots_leaked"] == 0
    finally:
        running.sweep()


async def _stream(client: triton.InferenceServerClient, words: list[str]) -> list[bytes]:
    async def requests():
        for word in words:
            yield {"model_name": "embed", "inputs": [text(word)]}

    found = []
    async for result, error in client.stream_infer(requests()):
        assert error is None
        found.append(result.as_numpy("EMBEDDING").tobytes())
    return found


async def _embedding(port: int, words: str) -> bytes:
    async with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        return (await client.infer("embed", [text(words)])).as_numpy("EMBEDDING").tobytes()
