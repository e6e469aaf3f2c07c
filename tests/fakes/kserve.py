"""A KServe v2 server over gRPC whose every answer is scripted, and a gRPC front before such servers.

Messages are bytes: what the proxy must pass on is what came, not what it means.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import grpc

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.ports import Replica
from autoscaler.proxy.access_log import AccessLog
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.grpc.routes import GrpcRoute
from autoscaler.proxy.grpc.server import GrpcServer
from autoscaler.proxy.options import RouteOptions
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.proxy.tenants.options import TenantOptions
from tests.fakes.front import Facts

SERVICE = "/inference.GRPCInferenceService/"
INFER, STREAM = f"{SERVICE}ModelInfer", f"{SERVICE}ModelStreamInfer"

Script = Callable[["Received", Any], Awaitable[bytes | None]]


def asks_for(model: str, payload: bytes = b"") -> bytes:
    """A message whose field 1 is `model` and field 7 is `payload`, as in a `ModelInferRequest`."""
    name = model.encode()
    return b"\x0a" + _varint(len(name)) + name + b"\x3a" + _varint(len(payload)) + payload


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@dataclass
class Received:
    path: str
    message: bytes
    metadata: tuple[tuple[str, str | bytes], ...]
    time_left: float | None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """The script is over, or was cancelled."""
    was_cancelled: bool = False

    def all(self, name: str) -> list[str | bytes]:
        return [value for key, value in self.metadata if key == name]


async def echoes(received: Received, context: Any) -> bytes:
    """Answers with what was asked."""
    return received.message


async def works_for_ever(received: Received, context: Any) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


class KServe(grpc.GenericRpcHandler):
    """Listens on a port of its own. A stream echoes each message until its script takes it over."""

    def __init__(self, script: Script = echoes, stream_script: Script | None = None) -> None:
        self.script, self.stream_script = script, stream_script
        self.calls: list[Received] = []
        self.running = 0
        self.news = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.listen(0)
        return self

    async def listen(self, port: int, credentials: grpc.ServerCredentials | None = None) -> None:
        self.server = grpc.aio.server(
            options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)]
        )
        self.server.add_generic_rpc_handlers((self,))
        address = f"127.0.0.1:{port}"
        if credentials is None:
            self.port = self.server.add_insecure_port(address)
        else:
            self.port = self.server.add_secure_port(address, credentials)
        await self.server.start()

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop(0)

    def replica(self, slots: int = 1, id: str | None = None) -> Replica:
        target = f"127.0.0.1:{self.port}"
        return Replica(id or f"k{self.port}", f"http://{target}", slots, target)

    async def got(self, count: int) -> Received:
        async with asyncio.timeout(10):
            while len(self.calls) < count:
                self.news.clear()
                await self.news.wait()
        return self.calls[count - 1]

    def service(self, handler_call_details: Any) -> Any:
        path = handler_call_details.method

        async def unary(message: bytes, context: Any) -> Any:
            return await self._play(self.script, path, message, context)

        async def stream(messages: Any, context: Any) -> Any:
            if self.stream_script is not None:
                # One that ended without having read would race with who still writes.
                await self._play(self.stream_script, path, await anext(messages), context)
                return
            async for message in messages:
                self._note(path, message, context)
                await context.write(message)

        if path == STREAM:
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    def _note(self, path: str, message: bytes, context: Any) -> Received:
        metadata = tuple((key, value) for key, value in context.invocation_metadata())
        received = Received(path, message, metadata, context.time_remaining())
        self.calls.append(received)
        self.news.set()
        return received

    async def _play(self, script: Script, path: str, message: bytes, context: Any) -> bytes | None:
        received = self._note(path, message, context)
        self.running += 1
        try:
            return await script(received, context)
        except asyncio.CancelledError:
            received.was_cancelled = True
            raise
        finally:
            self.running -= 1
            received.ended.set()


class GrpcFront:
    """The gRPC listener before pools of such servers."""

    def __init__(self, server: GrpcServer, drives: list[PoolDrive], facts: Facts, gate: TenantGate) -> None:
        self.server, self.drives, self.facts, self.gate = server, drives, facts, gate
        self.drive = drives[0]
        self.channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{server.port}", options=[("grpc.max_receive_message_length", -1)]
        )

    def call(self, message: bytes, path: str = INFER, **options: Any) -> Any:
        """Begin a unary call; await it for the answer."""
        return self.channel.unary_unary(path)(message, **options)

    def stream(self, **options: Any) -> Any:
        return self.channel.stream_stream(STREAM)(**options)

    async def until(self, **wanted: int) -> None:
        async with asyncio.timeout(10):
            while any(
                sum(getattr(drive.snapshot(), name) for drive in self.drives) != value
                for name, value in wanted.items()
            ):
                await asyncio.sleep(0.002)

    async def check_nothing_is_left(self) -> None:
        await self.until(waiting=0, busy=0)
        async with asyncio.timeout(10):
            while self.server.in_flight:
                await asyncio.sleep(0.002)
        self.facts.check_all_has_ended()
        for drive in self.drives:
            assert drive.reconcile(self.server.live_calls(drive.name)) == 0
            assert drive.snapshot().slots_leaked == 0
            assert drive.snapshot().ledger_difference == 0


@asynccontextmanager
async def grpc_front(
    *replicas: Replica,
    pools: dict[str, str | None] | None = None,
    options: GrpcOptions | None = None,
    route: RouteOptions | None = None,
    queue: QueueOptions | None = None,
    tenants: TenantOptions | None = None,
    book: TenantBook | None = None,
    tls: Any = None,
    dispatch: DispatchOptions | None = None,
    access_log: AccessLog | None = None,
) -> AsyncIterator[GrpcFront]:
    """A running listener; `replicas` are ready in the first of `pools` (name to model)."""
    clock, facts = SystemClock(), Facts()
    gate = TenantGate(tenants or TenantOptions(), book or TenantBook(), clock)
    named = pools or {"pool": None}
    drives = [
        PoolDrive(name, Dispatcher(queue or QueueOptions(), dispatch or DispatchOptions()), clock, [facts])
        for name in named
    ]
    routes = [
        GrpcRoute(drive, route or RouteOptions(), model, tls)
        for drive, model in zip(drives, named.values(), strict=True)
    ]
    server = GrpcServer(options or GrpcOptions(port=0), routes, clock, gate, access_log)
    await server.start()
    for replica in replicas:
        drives[0].replica_ready(replica)
    front = GrpcFront(server, drives, facts, gate)
    try:
        yield front
        await front.check_nothing_is_left()
    finally:
        await front.channel.close()
        await server.stop()
