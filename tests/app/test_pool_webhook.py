"""A pool whose replicas a receiver of events runs, made from settings; and the receiver that ships."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.app.status import pool_status
from load.free_port import free_port
from tests.fakes.pools import a_pool
from tests.fakes.webhook_receiver import FakeReceiver

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "webhook_receiver.py"


@pytest.fixture
async def model_server():
    async def ready(request):
        return web.Response()

    application = web.Application()
    application.router.add_get("/healthz", ready)
    async with TestServer(application, host="127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.port}"


def platform(receiver, **more):
    return {"kind": "webhook", "url": receiver.url, "retry_initial": "1ms", "retry_max": "5ms", **more}


async def test_a_pool_tells_what_it_must_have_and_then_what_it_decides(tmp_path, model_server):
    async with (
        FakeReceiver() as receiver,
        a_pool(tmp_path, platform(receiver, urls=[model_server]), scaling={"replicas_min": 3}) as pool,
    ):
        await pool.start()
        await receiver.until(lambda: receiver.applied == [3])
        await pool.control.tick()
        fleet = pool.control.state.fleet
        assert (fleet.ready, fleet.starting) == (1, 2)
        assert pool.drive.snapshot().slots == 1


async def test_in_recommend_mode_nothing_is_told(tmp_path, model_server):
    async with FakeReceiver() as receiver:
        given = platform(receiver, urls=[model_server])
        async with a_pool(tmp_path, given, mode="recommend", scaling={"replicas_min": 3}) as pool:
            await pool.start()
            await pool.control.tick()
            assert pool.control.state.decision.desired == 3
            assert pool.control.state.fleet.ready == 1
    assert receiver.attempts == []


async def test_a_start_waits_for_the_receiver_that_must_tell_the_fleet(tmp_path, model_server):
    async with FakeReceiver() as receiver:
        given = platform(receiver, status_url=receiver.status_url, status_interval="5ms")
        async with a_pool(tmp_path, given) as pool:
            starting = asyncio.create_task(pool.start())
            await asyncio.sleep(0.05)
            assert not pool.discovered
            assert pool.not_ready == "pool chat: looking for its replicas"
            receiver.fleet = {"ready": [model_server], "starting": 4}
            await starting
            await receiver.until(lambda: receiver.applied == [5])  # what is there, and what already comes


async def test_the_status_says_why_the_receiver_gives_no_answer_and_since_when(tmp_path, model_server):
    url = f"http://127.0.0.1:{free_port()}/scale"
    given = {"kind": "webhook", "url": url, "urls": [model_server], "retry_initial": "1ms"}
    async with a_pool(tmp_path, given) as pool:
        await pool.start()
        async with asyncio.timeout(20):
            while not pool.platform.last_error:
                await asyncio.sleep(0.02)
        first = pool.troubles.standing[0]
        (told,) = pool_status(pool, first.began_at + 7.0).troubles
    address = url.removeprefix("http://").removesuffix("/scale")
    assert (told.where, told.age) == ("platform", 7.0)
    assert told.text == f"{url} cannot be reached: {address}: connection refused"


@pytest.mark.parametrize("written", ["a secret that is long enough", "whsec_YSBzZWNyZXQgdGhhdCBpcyBsb25n"])
async def test_the_receiver_that_ships_runs_its_command_once_and_only_for_us(tmp_path, model_server, written):
    secret = tmp_path / "secret"
    secret.write_text(f"{written}\n")
    port, told = free_port(), tmp_path / "told.txt"
    command = [sys.executable, "-c", f"import sys; open({str(told)!r}, 'a').write(sys.argv[1] + ' ')"]
    arguments = [sys.executable, EXAMPLE, secret, str(port), *command, "{desired}"]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    try:
        given = {
            "kind": "webhook",
            "url": f"http://127.0.0.1:{port}/",
            "secret_file": str(secret),
            "urls": [model_server],
            "retry_initial": "20ms",
            "retry_max": "50ms",
        }
        async with a_pool(tmp_path, given, scaling={"replicas_min": 2}) as pool:
            await pool.start()
            async with asyncio.timeout(20):
                while not told.exists():
                    await asyncio.sleep(0.02)
            await pool.platform.scale_to(4)
            async with asyncio.timeout(20):
                while told.read_text() != "2 4 ":
                    await asyncio.sleep(0.02)
            secret.write_text("another secret, which it does not know\n")
            await pool.platform.scale_to(9)
            async with asyncio.timeout(20):
                while not pool.platform.last_error:
                    await asyncio.sleep(0.02)
            assert f"answered 401; is its secret one of those in {secret}" in pool.platform.last_error
            assert told.read_text() == "2 4 "
    finally:
        process.kill()
        process.wait()
