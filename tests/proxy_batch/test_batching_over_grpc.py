"""Requests over gRPC share calls with those that come over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from autoscaler.clock import SystemClock
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.grpc.routes import GrpcRoute
from autoscaler.proxy.grpc.server import GrpcServer
from autoscaler.proxy.options import RouteOptions
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.proxy.tenants.options import TenantOptions
from tests.fakes.batching import World, body, numbers, rows_of, same, world

INFER = "/inference.GRPCInferenceService/ModelInfer"


def message(*rows: int, id: str = "", shape: list[int] | None = None) -> bytes:
    request = service_pb2.ModelInferRequest(model_name="m", id=id)
    request.inputs.add(name="x", datatype="INT64", shape=shape or [len(rows), 1])
    request.raw_input_contents.append(np.array(rows, "<i8").tobytes())
    return request.SerializeToString()


def rows_in(answer: bytes) -> list[int]:
    read = service_pb2.ModelInferResponse.FromString(answer)
    assert list(read.outputs[0].shape) == [len(read.raw_output_contents[0]) // 8, 1]
    return np.frombuffer(read.raw_output_contents[0], "<i8").tolist()


@asynccontextmanager
async def both(it: World) -> AsyncIterator[Any]:
    """The gRPC listener of the same pool; yields what begins a call."""
    clock = SystemClock()
    route = GrpcRoute(it.proxy.drive, RouteOptions(), None, None, it.batching)
    gate = TenantGate(TenantOptions(), TenantBook(), clock)
    server = GrpcServer(GrpcOptions(port=0), [route], clock, gate)
    await server.start()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.port}")
    try:
        yield channel.unary_unary(INFER)
    finally:
        await channel.close()
        await server.stop()


async def test_http_and_grpc_share_a_call():
    async with world() as it, both(it) as call:
        first = await it.occupy()
        [over_http] = await it.wait(body(1, 2))
        over_grpc = [call(message(3, id="three")), call(message(4, 5))]
        await it.proxy.until(waiting=3)
        it.server.go(2)
        assert numbers(await first.answer("POST")) == [0]
        assert numbers(await over_http.answer("POST")) == [1, 2]
        got = [await each for each in over_grpc]
        assert [rows_in(each) for each in got] == [[3], [4, 5]]
        assert service_pb2.ModelInferResponse.FromString(got[0]).id == "three"
        assert sorted(it.server.calls[1]) == [1, 2, 3, 4, 5]


async def test_one_that_leaves_over_grpc_disturbs_nobody():
    async with world() as it, both(it) as call:
        await it.occupy()
        leaves, stays = call(message(1)), call(message(2))
        await it.proxy.until(waiting=2)
        it.server.go()
        await it.calls(2)
        leaves.cancel()
        await it.proxy.until(running=1)
        it.server.go()
        assert rows_in(await stays) == [2]
        assert len(it.server.calls) == 2


async def test_a_shape_without_its_data_is_refused():
    async with world() as it, both(it) as call:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(message(1, shape=[2**40, 1]))
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "its data is shorter" in error.value.details()
        assert it.server.calls == []


async def test_a_deadline_over_grpc_ends_its_own_call_only():
    async with world() as it, both(it) as call:
        await it.occupy()
        hurried, patient = call(message(1), timeout=0.3), call(message(2))
        await it.proxy.until(waiting=2)
        it.server.go()
        await it.calls(2)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await hurried
        assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        it.server.go()
        assert rows_in(await patient) == [2]


async def test_a_connection_that_breaks_is_told():
    async with world() as it, both(it) as call:
        await it.occupy()
        calls = [call(message(1)), call(message(2))]
        await it.proxy.until(waiting=2)
        it.server.go()
        await it.calls(2)
        await asyncio.sleep(0.3)  # sooner it would look like an idle connection that had been closed before
        it.server.upstream.wires[-1].transport.abort()
        for each in calls:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await each
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
            assert ("x-request-executed", "maybe") in list(error.value.trailing_metadata())


async def test_its_mates_survive_an_item_that_fails():
    """The failed one goes alone over gRPC, where nobody listens here; its mate over HTTP is served."""

    def poisoned(request):
        return 500 if 13 in rows_of(request) else same(request)

    async with world(poisoned) as it, both(it) as call:
        await it.occupy()
        [good] = await it.wait(body(1))
        bad = call(message(13))
        await it.proxy.until(waiting=2)
        it.server.go(4)
        assert numbers(await good.answer("POST")) == [1]
        with pytest.raises(grpc.aio.AioRpcError):
            await bad
        assert json.loads(it.server.upstream.requests[-1].body)
