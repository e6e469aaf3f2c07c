"""A sidecar before a Triton server is small: what it imports, and what it takes while it is idle."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import aiohttp
import psutil
import pytest

from tests.fakes.batching import body
from tests.fakes.command_process import CommandProcess
from tests.fakes.kserve_http import serving_batches
from tests.fakes.program import ROOT

RESIDENT_MAX = 60e6
HEAVY = ("numpy", "google.protobuf", "grpc", "scipy", "pandas", "pydantic")
SERVER = {"kind": "triton", "model": "same", "grpc_port": "none"}
TOGETHER = 8


@pytest.fixture
async def sidecar(tmp_path):
    """One that merges, before a server that has no gRPC port."""
    async with serving_batches() as url:
        platform = {"kind": "static", "urls": [url]}
        pools = {"chat": {"server": SERVER, "slots_per_replica": 1, "platform": platform}}
        running = CommandProcess(tmp_path, "sidecar", "sidecar", pools=pools)
        yield await running.launch().ready()
        running.sweep()


async def infer(session: aiohttp.ClientSession, url: str, number: int) -> int:
    async with session.post(f"{url}/v2/models/same/infer", data=body(number)) as answer:
        [output] = json.loads(await answer.text())["outputs"]
    return output["data"][0]


async def has_merged(running: CommandProcess, session: aiohttp.ClientSession) -> bool:
    """Whether a call served several requests."""
    async with session.get(f"{running.admin_url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    [count] = [line for line in lines if line.startswith('autoscaler_batch_size_count{pool="chat"}')]
    return float(count.split()[-1]) > 0


async def test_it_merges_requests_and_stays_small(sidecar):
    async with aiohttp.ClientSession() as session, asyncio.timeout(20.0):
        while not await has_merged(sidecar, session):
            asked = [infer(session, sidecar.url, number) for number in range(TOGETHER)]
            assert await asyncio.gather(*asked) == list(range(TOGETHER))
    process = psutil.Process(sidecar.process.pid)
    resident = process.memory_info().rss
    assert resident <= RESIDENT_MAX, (
        f"{resident / 1e6:.1f} MB are resident; look at what has come among the imports of "
        f"autoscaler.app.sidecar (python -X importtime). Most is in {largest(process)}"
    )
    assert await sidecar.end() == 0


def largest(process: psutil.Process) -> str:
    maps = sorted(process.memory_maps(), key=lambda one: -one.rss)[:8]
    return ", ".join(f"{Path(one.path).name} {one.rss / 1e6:.1f} MB" for one in maps)


PARTS = [
    "autoscaler.cli.sidecar_process",
    "autoscaler.model_servers.triton",
    "autoscaler.proxy.batch.batching",
    "autoscaler.proxy.batch.batch",
]


def test_what_it_imports_is_little():
    script = (
        f"import sys, importlib; [importlib.import_module(part) for part in {PARTS!r}]; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
