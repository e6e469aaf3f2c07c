"""How a controller ends: what it has told stands, and whoever leads next is not contradicted."""

import asyncio
import signal

import pytest

from autoscaler.app import controller
from autoscaler.app.watched_pool import WatchedPool
from autoscaler.settings import load
from load.free_port import free_port


class Lead:
    """Has the lead until it is given up."""

    leader = None

    def __init__(self, happened: list[str]):
        self.is_leader = True
        self._happened = happened

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.is_leader = False
            self._happened.append("lead given up")


@pytest.fixture
def settings(tmp_path):
    file = tmp_path / "controller.yaml"
    file.write_text(
        f"""
admin: 127.0.0.1:{free_port()}
history: {tmp_path}/history.db
pools:
  chat:
    slots_per_replica: 2
    demand: {{kind: list, urls: ["http://127.0.0.1:{free_port()}"]}}
    platform: {{kind: webhook, url: "http://127.0.0.1:{free_port()}/", urls: ["http://127.0.0.1:{free_port()}"]}}
"""
    )
    return load(file, command="controller")


async def test_the_lead_is_given_up_when_nothing_tells_a_platform_any_more(settings, monkeypatch):
    happened: list[str] = []
    stop, decide, signals = WatchedPool.stop, WatchedPool.run, asyncio.Queue()

    async def stopped(pool):
        await stop(pool)
        happened.append("platform stopped")

    async def decided(pool):
        try:
            await decide(pool)
        finally:
            happened.append("decisions ended")

    monkeypatch.setattr(controller, "make_leadership", lambda *_: Lead(happened))
    monkeypatch.setattr(controller, "stop_signals", lambda: signals)
    monkeypatch.setattr(WatchedPool, "stop", stopped)
    monkeypatch.setattr(WatchedPool, "run", decided)
    running = asyncio.create_task(controller._ControllerProgram(settings).run())
    await asyncio.sleep(0.2)
    signals.put_nowait(signal.SIGTERM)
    async with asyncio.timeout(20.0):
        await running
    assert happened == ["decisions ended", "platform stopped", "lead given up"]


async def test_a_fault_in_seeking_the_lead_ends_the_program(settings, monkeypatch):
    class Faulty(Lead):
        async def run(self) -> None:
            raise RuntimeError("a fault of this test")

    monkeypatch.setattr(controller, "make_leadership", lambda *_: Faulty([]))
    monkeypatch.setattr(controller, "stop_signals", asyncio.Queue)
    with pytest.raises(RuntimeError, match="a fault of this test"):
        async with asyncio.timeout(20.0):
            await controller._ControllerProgram(settings).run()
