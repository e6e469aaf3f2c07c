"""A pool that commands scale, made from settings: real model servers, started and ended by a script."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fakes.pools import a_pool

ROOT = Path(__file__).parents[2]
SCALE = ROOT / "deploy" / "examples" / "scale_processes.py"
SERVER = [sys.executable, "-m", "load.model_server", "--port", "{port}", "--service-time", "0.01"]


@pytest.fixture
def folder(tmp_path):
    """Where the script keeps what it started; what is left at the end is killed."""
    yield tmp_path / "processes"
    for each in (tmp_path / "processes").glob("*.pid"):
        os.kill(int(each.read_text()), signal.SIGKILL)


def platform(folder, **more):
    command = [sys.executable, str(SCALE), str(folder)]
    return {
        "kind": "exec",
        "scale": [*command, "scale", "{replicas}", *SERVER],
        "status": [*command, "status"],
        "cwd": str(ROOT),
        "status_interval": "50ms",
        "probe_interval": "50ms",
        **more,
    }


async def until(pool, condition):
    async with asyncio.timeout(40):
        while not condition(fleet := await pool.platform.fleet()):
            await asyncio.sleep(0.05)
    return fleet


async def test_a_script_starts_and_ends_real_servers(tmp_path, folder):
    async with a_pool(tmp_path, platform(folder), scaling={"replicas_min": 2}) as pool:
        await pool.start()
        fleet = await until(pool, lambda fleet: fleet.ready == 2)
        assert fleet.cold_start_mean < 30  # measured, not the initial minute
        assert pool.drive.snapshot().slots == 2
        await pool.platform.scale_to(1)
        await until(pool, lambda fleet: (fleet.ready, fleet.draining) == (1, 0))
    assert len(list(folder.glob("*.pid"))) == 1  # the program ends; the replicas run on
    async with a_pool(tmp_path, platform(folder)) as pool:
        await pool.start()
        assert (await pool.platform.fleet()).ready == 1


async def test_in_recommend_mode_nothing_is_run(tmp_path, folder):
    given = platform(folder)
    async with a_pool(tmp_path, given, mode="recommend", scaling={"replicas_min": 2}) as pool:
        await pool.start()
        await pool.control.tick()
        assert pool.control.state.decision.desired == 2
        assert (await pool.platform.fleet()).ordered == 0
    assert list(folder.glob("*.pid")) == []
