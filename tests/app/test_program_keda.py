"""The whole program, asked by KEDA: a pool that sleeps is woken by its first request, over real sockets."""

import asyncio
import subprocess
import sys
from time import monotonic

import aiohttp
import grpc
import pytest
import yaml

from load.free_port import free_port
from tests.fakes.keda import KedaClient, scaled_object
from tests.fakes.program import ROOT, Program, post

REF = scaled_object("chat", pool="pool")


@pytest.fixture
def program(tmp_path):
    """Makes programs whose one replica KEDA would start at a port that is still closed."""
    made = []

    def make(**top) -> Program:
        running = Program(tmp_path, scaling={"replicas_min": 0, "replicas_max": 4})
        running.keda, running.replica = free_port(), free_port()
        settings = yaml.safe_load(running.config.read_text())
        settings |= {"keda": {"listen": f"127.0.0.1:{running.keda}"}, "control_interval": "20s", **top}
        settings["pools"]["pool"] |= {
            "platform": {
                "kind": "keda",
                "urls": [f"http://127.0.0.1:{running.replica}"],
                "probe_interval": "100ms",
                "cold_start_initial": "5s",
            },
        }
        running.config.write_text(yaml.safe_dump(settings))
        made.append(running)
        return running

    yield make
    for each in made:
        each.sweep()


async def listening(running):
    running.launch()
    async with asyncio.timeout(60):
        while True:
            assert running.process.poll() is None, running.complaint()
            try:
                return await running.get("/healthz")
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)


async def known(client):
    async with asyncio.timeout(20):
        while True:
            try:
                return await client.is_active(REF)
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                await asyncio.sleep(0.05)


async def test_the_first_request_at_zero_wakes_the_pool_and_is_served(program):
    running = program()
    await listening(running)
    async with KedaClient(running.keda) as client, aiohttp.ClientSession() as session:
        assert await known(client) is False
        stream = client.stream_is_active(REF)
        assert KedaClient.read_active(await stream.read()) is False
        sent_at = monotonic()
        sent = asyncio.create_task(post(session, running.url))
        assert KedaClient.read_active(await asyncio.wait_for(stream.read(), 10)) is True
        assert monotonic() - sent_at < 2.0  # the next decision is 20 s away
        assert await client.metric(REF, "desired-replicas") == 1
        command = [sys.executable, "-m", "load.model_server", "--port", str(running.replica)]
        replica = subprocess.Popen([*command, "--service-time", "0.01"], cwd=ROOT)  # what KEDA has done
        try:
            assert await asyncio.wait_for(sent, 30) == 200
        finally:
            replica.kill()
            replica.wait()
        stream.cancel()
    assert await running.end() == 0


async def test_in_recommend_mode_keda_gets_no_answer_to_act_on(program):
    running = program(mode="recommend", control_interval="200ms")
    await listening(running)
    async with KedaClient(running.keda) as client:
        await running.until(lambda pool: pool["last_decision"])
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await client.metric(REF, "desired-replicas")
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "recommend" in refusal.value.details()
    assert await running.end() == 0
