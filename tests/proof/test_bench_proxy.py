"""The benchmark of the proxy measures what it says: client and server count, and who is absent is named."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from aiohttp import web

from load.bench import proxy_client as client
from load.bench.proxy import bars
from load.bench.proxy_bare import PassThrough
from load.bench.proxy_measure import Figures, median
from load.bench.proxy_subjects import SUBJECTS, Subject
from load.bench.proxy_upstream import LARGE_BYTES, Server


@asynccontextmanager
async def listening(factory) -> AsyncIterator[int]:
    listener = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()


@asynccontextmanager
async def a_way(through: str) -> AsyncIterator[int]:
    async with listening(Server) as upstream:
        if through == "direct":
            yield upstream
            return
        async with listening(web.Server(PassThrough(f"http://127.0.0.1:{upstream}"))) as port:
            yield port


@pytest.mark.parametrize("through", ["direct", "bare"])
async def test_each_answer_is_counted_once_and_clocked(through):
    async with a_way(through) as port:
        closed = await client.closed_loop(port, client.SMALL_REQUEST, 4, 0.3)
        opened = await client.open_loop(port, client.SMALL_REQUEST, 100.0, 0.5)
    assert closed.good > 20 and closed.bad == 0
    assert len(closed.latencies) == closed.good
    assert 30 <= opened.good <= 51
    assert 0 < np.median(opened.latencies) < 0.1


@pytest.mark.parametrize("through", ["direct", "bare"])
async def test_a_large_answer_is_large_and_a_held_one_never_comes(through):
    answered = []
    async with a_way(through) as port:
        large, held = await client.connect(port, 2, lambda connection, status: answered.append(connection))
        large.ask(client.LARGE_REQUEST)
        held.ask(client.HELD_REQUEST)
        async with asyncio.timeout(10):
            while large not in answered:
                await asyncio.sleep(0.01)
        assert answered == [large]
        large.close()
        held.close()
    assert len(client.LARGE_REQUEST) > LARGE_BYTES


@pytest.mark.parametrize("through", ["direct", "bare"])
async def test_each_event_of_a_stream_is_counted_and_its_way_is_clocked(through):
    async with a_way(through) as port:
        (stream,) = await client.open_streams(port, 1, events=5, every=0.02)
        async with asyncio.timeout(10):
            while stream.events < 5:
                await asyncio.sleep(0.01)
        assert len(stream.delays) == 5
        assert all(0 <= delay < 1.0 for delay in stream.delays)
        stream.close()


def test_a_peer_that_is_not_installed_is_left_out_with_a_remedy():
    subject = Subject("Peer", lambda *_: [], needs="no-such-program", remedy="install it")
    assert subject.missing == "Peer is left out: there is no no-such-program on PATH; install it"
    assert [each.missing for each in SUBJECTS if each.name.startswith(("ours", "bare"))] == [None] * 3


def test_the_bars_are_measured_against_the_bare_one_of_the_same_run():
    bare = Figures(1000.0, 1.0, 100e-6, 1e-3, 2e-3, 1e-3, 2e-3, 5e8, 10e-6, 1e-3, 1e-3, 2e4, 2e4)
    direct = Figures(p50_at_500=0.5e-3)
    ours = dataclasses.replace(bare, cpu_per_request=150e-6, p50_at_500=1.5e-3, bytes_per_second=4e8)
    shown = bars({"direct": direct, "bare aiohttp": bare, "ours": ours}, "ours")
    measured, met = (list(shown.columns[at].cells) for at in (1, 3))
    assert measured[:4] == ["1.50", "1.00", "2.00", "0.80"]
    assert met == ["yes", "yes", "NO", "NO", "yes", "yes"]


def test_rounds_are_put_together_by_their_medians():
    rounds = [Figures(cpu_per_request=value) for value in (1.0, 9.0, 2.0)]
    assert median(rounds).cpu_per_request == 2.0
