"""The dashboard against the real thing: the program under load, scraped by a real Prometheus.

One program serves three pools, so that no panel has an excuse: echo servers that are scaled, a language model
that streams, and a server that takes batches. Its GPUs are those of the stand-in for the driver's library.
Beside it a controller decides on a fourth pool, whose requests a proxy takes.
"""

import asyncio
import contextlib
import math
import sys
import time
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from load.free_port import free_port
from tests.deploy.dashboard_queries import DEPLOY, OF_GPUS, RULES, Query, queries
from tests.fakes import batching
from tests.fakes.command_process import CommandProcess
from tests.fakes.kserve_http import serving_batches
from tests.fakes.nvml_library import NvmlLibrary, can_be_built
from tests.fakes.program import ROOT, Program
from tests.fakes.prometheus_server import ABSENT, installed, scraping

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)

ECHO = [
    "sh",
    "-c",
    'sleep 2 && exec "$@"',  # longer than a control interval, or no order would ever be open
    "sh",
    sys.executable,
    str(DEPLOY / "examples" / "echo_server.py"),
    "--port",
    "{port}",
    "--service-time",
    "0.2",
]
CHAT = [sys.executable, "-m", "tests.fakes.chat_process", "--port", "{port}"]
NEVER_IN_A_PROGRAM_THAT_IS_WELL = {
    "AutoscalerDown",
    "AutoscalerGpuLost",
    "AutoscalerHoldsBlind",
    "AutoscalerNoReplicaReady",
    "AutoscalerSlotsLeaked",
    "AutoscalerSupplyShort",
    "AutoscalerTwoLead",
}
"""Not even for a moment; others have a time before which they mean nothing."""
GPUS = (
    "count 1",
    "gpu.0.util 88",
    "gpu.0.mem_total 1000000",
    "gpu.0.mem_used 600000",
    "gpu.0.power_mw 350000",
    "gpu.0.power_limit_mw 700000",
)
BEFORE = Query("", "", 'autoscaler_desired_replicas{pool="pool"} > 0')
"""A fleet must have been seen before its change can be."""
ALL_SHOWN_WITHIN = 90.0
"""Half a minute on an idle machine [s]."""


def program(folder, batches_at: str) -> Program:
    """A program of three pools: `pool` is scaled, `chat` speaks, `batch` batches."""
    made = Program(
        folder, command=ECHO, route={"prefix": "/echo"}, scaling={"replicas_min": 1, "replicas_max": 3}
    )
    config = yaml.safe_load(made.config.read_text())
    config["tenants"] = {"header": "X-Tenant", "required": False}
    config["grpc"] = {"listen": f"127.0.0.1:{free_port()}"}
    config["pools"]["chat"] = {
        "route": {"prefix": "/v1"},
        "server": {"kind": "openai"},
        "slots_per_replica": 4,
        "signals": {"engine": {"preset": "vllm"}},
        "platform": {"kind": "local", "command": CHAT, "cwd": str(ROOT)},
    }
    config["pools"]["batch"] = {
        "route": {"prefix": "/v2"},
        "server": {"kind": "triton", "model": "same", "grpc_port": "none"},
        "platform": {"kind": "static", "urls": [batches_at]},
    }
    made.config.write_text(yaml.safe_dump(config))
    return made


@pytest.fixture
async def running(tmp_path, monkeypatch) -> AsyncIterator[Program]:
    if can_be_built():
        library = NvmlLibrary(tmp_path)
        library.says(*GPUS)
        for name in ("LD_LIBRARY_PATH", "FAKE_NVML_FILE"):
            monkeypatch.setenv(name, library.env[name])
    async with serving_batches() as batches_at:
        made = program(tmp_path, batches_at)
        try:
            await made.start()
            yield made
        finally:
            if made.process is not None and made.process.poll() is None:
                await made.end()
            made.sweep()


@pytest.fixture
async def model_server() -> AsyncIterator[TestServer]:
    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(0.05)
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", answer)
    async with TestServer(application, host="127.0.0.1") as server:
        yield server


@pytest.fixture
async def door(tmp_path) -> AsyncIterator[CommandProcess]:
    """A proxy that is told what it may use."""
    pool = {"server": {"kind": "plain_http"}, "platform": {"kind": "controller"}}
    made = CommandProcess(tmp_path, "sidecar", "door", pools={"door": pool}).launch()
    try:
        yield made
    finally:
        made.sweep()


@pytest.fixture
async def controller(door, model_server, tmp_path) -> AsyncIterator[CommandProcess]:
    """Who tells it."""
    pool = {
        "slots_per_replica": 4,
        "server": {"kind": "plain_http"},
        "demand": {"kind": "list", "urls": [door.admin_url], "interval": "500ms", "doors": "proxies"},
        "platform": {"kind": "static", "urls": [f"http://127.0.0.1:{model_server.port}"]},
    }
    lock = {"lock_file": str(tmp_path / "leader.lock")}
    settings = {"control_interval": "1s", "leadership": lock, "pools": {"door": pool}}
    made = CommandProcess(tmp_path, "controller", "controller", **settings).launch()
    try:
        await made.ready()
        await door.ready()
        yield made
    finally:
        made.sweep()


@pytest.fixture
def prometheus(running, door, controller, tmp_path) -> Iterator[str]:
    targets = [f"127.0.0.1:{each.admin}" for each in (running, door, controller)]
    with scraping(tmp_path, targets, RULES) as url:
        yield url


async def load(url: str, door: str) -> None:
    """Ask every pool again and again, until cancelled."""
    chat = {"model": "base", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    batch = {"data": batching.body(1), "headers": {"Content-Type": "application/json"}}
    asked = [(f"{url}/echo", {"data": b"hello"})] * 5 + [(f"{url}/v1/chat/completions", {"json": chat})] * 2
    asked += [(f"{url}/v2/models/same/infer", batch)] * 6 + [(f"{door}/echo", {"data": b"hello"})] * 2

    async def ask(session: aiohttp.ClientSession, at: str, what: dict) -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.post(at, **what) as answer:
                    await answer.read()
            await asyncio.sleep(0.05)

    async with (
        aiohttp.ClientSession(headers={"X-Tenant": "somebody"}) as session,
        asyncio.TaskGroup() as group,
    ):
        for at, what in asked:
            group.create_task(ask(session, at, what))


async def shown(session: aiohttp.ClientSession, prometheus: str, query: Query) -> bool:
    """Whether a query has a number to show; a query that is none fails."""
    async with session.get(f"{prometheus}/api/v1/query", params={"query": query.text}) as answer:
        said = await answer.json()
    assert said["status"] == "success", (query, said)
    values = [float(series["value"][1]) for series in said["data"]["result"]]
    return any(math.isfinite(value) for value in values)


async def test_no_panel_is_empty_while_the_program_serves(running, door, prometheus):
    async with aiohttp.ClientSession() as session, asyncio.timeout(ALL_SHOWN_WITHIN):
        while not await shown(session, prometheus, BEFORE):
            await asyncio.sleep(0.2)
    left_out = frozenset() if can_be_built() else OF_GPUS
    empty = [query for query in queries() if query.panel not in left_out]
    loading = asyncio.create_task(load(running.url, door.url))
    try:
        async with aiohttp.ClientSession() as session:
            give_up = time.monotonic() + ALL_SHOWN_WITHIN
            while empty and time.monotonic() < give_up:
                await asyncio.sleep(0.5)
                empty = [query for query in empty if not await shown(session, prometheus, query)]
            rules = await (await session.get(f"{prometheus}/api/v1/rules")).json()
    finally:
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
    assert empty == []
    evaluated = [rule for group in rules["data"]["groups"] for rule in group["rules"]]
    assert len(evaluated) > 20
    assert [rule["name"] for rule in evaluated if rule.get("lastError")] == []
    begun = {rule["name"] for rule in evaluated if rule.get("alerts")}
    assert not begun & NEVER_IN_A_PROGRAM_THAT_IS_WELL
