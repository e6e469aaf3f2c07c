"""Load and trouble at once, briefly: nothing leaks, nothing hangs, every request ends once.

`python -m load soak` does it for as long as one likes, and fits slopes.
"""

import asyncio

import aiohttp
import numpy as np
import pytest
import uvloop

from load.soak.fault_proxy import FaultProxy
from load.soak.run import Soak, run
from load.soak.slopes import slope
from tests.fakes.client import Client
from tests.fakes.upstream import Upstream, says


def test_every_request_ends_once_and_nothing_is_left():
    report = uvloop.run(run(Soak(seconds=10.0, clients=16, rude_rate=120.0, trouble=0.5, sample=0.2)))
    assert report.wrongs() == []
    assert report.ends.counts["ok"] > 300, "hardly anything was asked"
    assert report.left.total() > 500, "hardly anybody left"
    assert set(report.troubles) == {"killed", "stopped", "reset", "silent", "slow_accept", "refused", "cut"}


def test_a_leak_is_seen_through_noise_and_noise_is_no_leak():
    rng = np.random.default_rng(1)
    times, noise = np.arange(1200.0), rng.normal(0.0, 2.0, 1200)
    assert slope(times, 100.0 + times / 60 + noise).grows(0.02)
    assert not slope(times, 100.0 + noise).grows(0.02)
    assert not slope(times, np.full(1200, 7.0)).grows(0.02)


@pytest.mark.parametrize("trouble", ["refuse", "silent", "cut_after", "reset"])
async def test_the_trouble_that_is_asked_for_is_made(trouble):
    async with Upstream(says(b"x" * 1000)) as model, FaultProxy(model.port) as way:
        client = await Client.connect(way.port)
        client.ask("/x", b"{}")
        assert (await client.answer()).body == b"x" * 1000
        if trouble == "reset":
            way.reset_all()
        else:
            setattr(way, trouble, 500 if trouble == "cut_after" else True)
            client = await Client.connect(way.port)
            client.ask("/x", b"{}")
        if trouble == "silent":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.answer()
            way.silent = False
            assert (await client.answer()).status == 200
        else:
            await client.wait_closed()
            assert client.was_reset or trouble == "reset"


async def test_a_slow_accept_lets_connections_wait():
    async with Upstream() as model, FaultProxy(model.port) as way:
        way.slow_accept(0.2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(_get(way.port) for _ in range(3)))
        assert loop.time() - began > 0.3


async def _get(port: int) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/x") as answer:
        await answer.read()
