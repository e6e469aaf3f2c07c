"""The handling of a call is cancelled at its k-th await, for every k: the ledger is exact each time."""

import asyncio
from contextlib import suppress

import grpc
import pytest

from autoscaler.proxy.grpc.handler import Handling
from tests.fakes.kserve import SERVICE, GrpcFront, KServe, asks_for, grpc_front
from tests.fakes.stepper import Stepper

FIRST, SECOND = asks_for("first"), asks_for("second")
AWAITS = {"unary": 2, "stream": 6, "question": 1}
"""At least so many there are: for a slot and for the answer; for each message of a stream; for the answer."""


async def conversation(front: GrpcFront, kind: str, stepper: Stepper, gate: asyncio.Event) -> None:
    """One call while another holds the only slot for a moment, so that it waits."""
    first = front.call(FIRST)
    await front.until(busy=1)
    asking = asyncio.create_task(_ask(front, kind))
    async with asyncio.timeout(5):
        while not stepper.steps:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.005)
    gate.set()
    await asking
    assert await first == FIRST


async def _ask(front: GrpcFront, kind: str) -> None:
    path = SERVICE + ("ModelInfer" if kind == "unary" else "RepositoryIndex")
    call = front.stream() if kind == "stream" else front.call(SECOND, path)
    with suppress(grpc.aio.AioRpcError, TimeoutError, asyncio.InvalidStateError):
        async with asyncio.timeout(0.2):  # a handling that is cancelled from inside answers nobody
            if kind == "stream":
                for _ in range(2):
                    await call.write(SECOND)
                    await call.read()
                await call.done_writing()
            await call.code()
    call.cancel()


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("kind", ["unary", "stream", "question"])
async def test_t5_cancelled_at_every_await_the_ledger_is_exact(monkeypatch, kind, cut):
    original, stepper, calls, gate = Handling.run, Stepper(0, cut=cut), 0, asyncio.Event()

    async def stepped(self: Handling, message: bytes | None) -> object:
        nonlocal calls
        calls += 1
        if calls % 2:
            return await original(self, message)
        return await stepper.run(self, original(self, message))

    async def the_first_holds_its_slot(received, context):
        if received.message == FIRST:
            await gate.wait()
        return received.message

    monkeypatch.setattr(Handling, "run", stepped)
    at = 1
    async with KServe(the_first_holds_its_slot) as server, grpc_front(server.replica()) as front:
        while True:
            stepper.at, stepper.steps = at, 0
            gate.clear()
            await conversation(front, kind, stepper, gate)
            await front.check_nothing_is_left()
            snapshot = front.drive.snapshot()
            assert (snapshot.busy, snapshot.waiting, snapshot.slots) == (0, 0, 1), f"at await {at}"
            async with asyncio.timeout(5):
                while server.running:
                    await asyncio.sleep(0.001)
            if stepper.steps < at:
                break
            at += 1
    assert at > AWAITS[kind], "it was cancelled at several places"
