"""A KServe v2 server over HTTP that gives back its input, one call at a time as the test lets it, and a proxy
that merges requests for it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from autoscaler.clock import SystemClock
from autoscaler.dispatch import QueueOptions
from autoscaler.domain.model import ModelDescription, SizeTime
from autoscaler.kserve.infer import InferAnswer, InferRequest
from autoscaler.kserve.read_http import HEADER_LENGTH, read_http
from autoscaler.kserve.tensor import Tensor
from autoscaler.kserve.write_http import write_http
from autoscaler.proxy.batch.batching import Batching
from autoscaler.proxy.batch.options import BatchingOptions
from tests.fakes.client import Answer, Client
from tests.fakes.front import Front, front
from tests.fakes.upstream import Received, Upstream, UpstreamWire

INFER = "/v2/models/m/infer"


def body(*rows: int, name: str = "x", id: str = "", **more: Any) -> bytes:
    """A request in JSON with a column of numbers."""
    one = {"name": name, "shape": [len(rows), 1], "datatype": "INT64", "data": list(rows)}
    return json.dumps({"inputs": [one], **({"id": id} if id else {}), **more}).encode()


def numbers(answer: Answer) -> list[int]:
    """The numbers of an answer in JSON."""
    [output] = json.loads(answer.body)["outputs"]
    assert output["shape"] == [len(output["data"]), 1]
    return output["data"]


def rows_of(request: InferRequest) -> list[int]:
    """The numbers of a request."""
    data = bytes(request.inputs[0].data)
    return [int.from_bytes(data[i : i + 8], "little", signed=True) for i in range(0, len(data), 8)]


def asked(received: Received) -> InferRequest:
    """What came to the server, as it reads it."""
    length = received.head.get(HEADER_LENGTH)
    if length is None:
        data = json.loads(received.body)
        data.pop("parameters", None)
        return read_http("m", "", json.dumps(data).encode(), None)
    return read_http("m", "", received.body, int(length))


def same(request: InferRequest) -> InferAnswer:
    outputs = tuple(Tensor("y", each.datatype, each.shape, each.data) for each in request.inputs)
    return InferAnswer("m", "1", outputs)


Model = Callable[[InferRequest], InferAnswer | int]
"""Answers a request, or fails with a status."""


class Server:
    """Answers a call when the test says `go`; `calls` are the rows of each so far."""

    def __init__(self, model: Model = same) -> None:
        self.model = model
        self.calls: list[list[int]] = []
        self._gates = asyncio.Semaphore(0)
        self.holds = True
        self.upstream = Upstream(self._script)

    def go(self, count: int = 1) -> None:
        """Let so many more calls be answered."""
        for _ in range(count):
            self._gates.release()

    async def _script(self, wire: UpstreamWire, received: Received) -> None:
        request = asked(received)
        self.calls.append(rows_of(request))
        if self.holds:
            await self._gates.acquire()
        answer = self.model(request)
        if isinstance(answer, int):
            text = b'{"error":"no"}'
            wire.send(b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n%b" % (answer, len(text), text))
            return
        fields, text = write_http(answer, request)
        lines = [f"{name}: {value}" for name, value in fields.items()]
        wire.send_head(*lines, f"Content-Length: {len(text)}")
        wire.send(text)


class Describer:
    """Says of every model the same, as `DescribesModels`."""

    def __init__(self, **changes: Any) -> None:
        facts: dict[str, Any] = {"batch_size_max": 8, "instances": 1} | changes
        self.description: ModelDescription | None = ModelDescription("m", "", inputs=(), outputs=(), **facts)
        self.asked = 0

    async def describe(self, url: str, model: str, version: str = "") -> ModelDescription | None:
        self.asked += 1
        return self.description

    async def statistics(self, url: str, model: str) -> tuple[SizeTime, ...]:
        return ()


class World:
    """Clients, the proxy, and the server behind it."""

    def __init__(self, proxy: Front, server: Server, batching: Batching) -> None:
        self.proxy = proxy
        self.server = server
        self.batching = batching
        self.clients: list[Client] = []

    async def send(self, data: bytes, *fields: str, target: str = INFER) -> Client:
        """Send a request; return its client, whose answer has yet to come."""
        client = await self.proxy.client()
        self.clients.append(client)
        client.ask(target, data, *fields)
        return client

    async def occupy(self) -> Client:
        """Keep the only slot busy, with the request 0, until the server is let go."""
        client = await self.send(body(0))
        await self.server.upstream.got(1)
        return client

    async def wait(self, *requests: bytes, fields: tuple[str, ...] = ()) -> list[Client]:
        """Let requests wait, in this order."""
        before = self.proxy.drive.snapshot().waiting
        clients = []
        for number, request in enumerate(requests, start=1):
            clients.append(await self.send(request, *fields))
            await self.proxy.until(waiting=before + number)
        return clients

    async def calls(self, count: int) -> list[list[int]]:
        """Wait for so many calls; return the rows of each."""
        async with asyncio.timeout(10):
            while len(self.server.calls) < count:
                await asyncio.sleep(0.001)
        return self.server.calls


@asynccontextmanager
async def world(
    model: Model = same,
    describer: Describer | None = None,
    options: BatchingOptions | None = None,
    slots: int = 1,
    batched: Callable[[int], None] = lambda rows: None,
) -> AsyncIterator[World]:
    server = Server(model)
    batching = Batching(options or BatchingOptions(), describer or Describer(), "m", SystemClock(), batched)
    async with server.upstream:
        replica = server.upstream.replica(slots)
        queue = QueueOptions(clock_stops_max=0.0, refuse_late=False)
        async with front(replica, batching=batching, queue=queue) as proxy:
            await asyncio.sleep(0)  # the model is described
            await asyncio.sleep(0)
            this = World(proxy, server, batching)
            try:
                yield this
            finally:
                server.holds = False
                server.go(100)
                for client in this.clients:
                    client.close()
