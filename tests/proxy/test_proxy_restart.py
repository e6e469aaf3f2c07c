"""Two processes on one port: the new one comes, the old one goes, and no request is lost. (K12, E16, A27)"""

import asyncio
import json
import sys
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

from load.free_port import free_port
from tests.fakes.client import Client
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def proxy_process(port: int, model: Upstream):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.proxy_process", "--port", str(port), "--upstream", str(model.port),
        stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ends_well(process: asyncio.subprocess.Process) -> None:
    """Tell it to go; it drains, and nothing has leaked."""
    process.terminate()
    async with asyncio.timeout(20):
        assert json.loads(await process.stdout.readline()) == {"leaked": 0}
        assert await process.wait() == 0


class Load:
    """Clients that ask one request after the other, on connections that they keep while they may."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.statuses: Counter[int] = Counter()
        self.stopped = False

    async def one(self, keeps: bool) -> None:
        client: Client | None = None
        while not self.stopped:
            client = client or await Client.connect(self.port)
            client.ask("/v1/x", b"{}")
            answer = await client.answer()  # raises if the connection breaks: the request was lost
            self.statuses[answer.status] += 1
            if not keeps or answer.head.get("Connection") == "close":
                client.close()
                client = None
        if client is not None:
            client.close()


async def takes_a_moment(wire: UpstreamWire, request: Received) -> None:
    await asyncio.sleep(0.005)
    await says()(wire, request)


async def test_a27_k12_e16_a_rolling_restart_under_load_loses_no_request():
    port = free_port()
    async with Upstream(takes_a_moment) as model, proxy_process(port, model) as old:
        load = Load(port)
        clients = [asyncio.create_task(load.one(keeps)) for keeps in [True] * 8 + [False] * 8]
        async with proxy_process(port, model) as new:
            before = sum(load.statuses.values())
            await ends_well(old)
            while sum(load.statuses.values()) < before + 200:
                assert not any(client.done() for client in clients), "a request was lost"
                await asyncio.sleep(0.01)
            load.stopped = True
            await asyncio.gather(*clients)
            await ends_well(new)
    assert set(load.statuses) == {200}


async def test_k7_a_stream_that_runs_is_served_to_its_end_by_the_old_one():
    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send_chunk(b"data: 1\n\n")
        await gate.wait()
        wire.send_chunk(b"data: [DONE]\n\n")
        wire.send_chunk(b"")

    gate, port = asyncio.Event(), free_port()
    async with Upstream(script) as model, proxy_process(port, model) as old:
        stream = await Client.connect(port)
        stream.ask("/v1/x", b"{}")
        await stream.head()
        await stream.event()
        async with proxy_process(port, model) as new:
            going = asyncio.create_task(ends_well(old))
            await asyncio.sleep(0.5)
            assert not going.done()
            model.script = says(b"by the new one")
            later = await Client.connect(port)
            later.ask("/v1/x", b"{}")
            assert (await later.answer()).body == b"by the new one"
            later.close()
            gate.set()
            assert [await stream.event(), await stream.chunk()] == ["data: [DONE]\n\n", b""]
            await going
            await ends_well(new)
