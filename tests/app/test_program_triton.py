"""The whole program before real Triton servers: what a client gets is what Triton says."""

import sys
from pathlib import Path

import aiohttp
import pytest

from load.triton.install import is_installed
from tests.fakes.program import Program

HOME = Path(__file__).parents[2] / ".triton"
SERVE = [sys.executable, "-m", "load.triton", "serve", "--home", str(HOME), "--port", "{port}"]
INPUT = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["A quiet room, please."]}


@pytest.mark.skipif(not is_installed(HOME), reason="Triton is not installed; `make triton` does it")
async def test_an_embedding_through_the_proxy_is_the_one_that_triton_gives(tmp_path):
    running = Program(
        tmp_path,
        command=SERVE,
        server={"kind": "triton", "model": "embed"},
        scaling={"replicas_min": 2, "replicas_max": 2},
    )
    try:
        await running.start(ready=2)
        infer = "/v2/models/embed/infer"
        async with aiohttp.ClientSession() as session:
            directly = []
            for replica in running.replicas():
                port = _port(replica.cmdline())
                if port:
                    directly.append(f"http://127.0.0.1:{port}{infer}")
            answers = []
            for url in [running.url + infer, running.url + infer, *directly]:
                async with session.post(url, json={"inputs": [INPUT]}) as answer:
                    assert answer.status == 200
                    answers.append((await answer.json())["outputs"][0]["data"])
            async with session.post(
                running.url + "/v2/models/none/infer", json={"inputs": [INPUT]}
            ) as unknown:
                assert unknown.status == 404  # Triton's own answer, passed on
        assert len(directly) == 2
        assert len(answers[0]) == 384
        assert all(answer == answers[0] for answer in answers)
        assert await running.end() == 0
    finally:
        running.sweep()


def _port(command: list[str]) -> str | None:
    """The HTTP port of a Triton server; None for the processes of its models."""
    ports = [word.partition("=")[2] for word in command if word.startswith("--http-port=")]
    return ports[0] if ports else None
