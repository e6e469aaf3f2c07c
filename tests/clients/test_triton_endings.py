"""Before a real Triton, over both protocols: whatever ends in the middle, the ledger stays exact."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

import aiohttp
import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from autoscaler.domain import Outcome
from tests.fakes import triton_models as models
from tests.fakes.triton_front import TritonFront, triton_front
from tests.fakes.triton_server import TritonServer, needs_triton

BODY = b'{"inputs": [{"name": "INPUT", "shape": [1, 1], "datatype": "FP32", "data": [1.0]}]}'
OURS = "X-Request-Executed"
"""Every refusal of the proxy has it; no answer of Triton does."""


class Asks:
    """Clients of both listeners; each answer is a status, and whether Triton gave it itself."""

    def __init__(self, front: TritonFront, session: aiohttp.ClientSession, channel: grpc.aio.Channel) -> None:
        self.url = f"http://127.0.0.1:{front.proxy.port}"
        self.session = session
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

    async def over_http(self, model: str) -> tuple[object, bool]:
        async with self.session.post(f"{self.url}/v2/models/{model}/infer", data=BODY) as answer:
            await answer.read()
            return answer.status, OURS not in answer.headers

    async def over_grpc(self, model: str) -> tuple[object, bool]:
        tensor = service_pb2.ModelInferRequest.InferInputTensor(name="INPUT", datatype="FP32", shape=[1, 1])
        request = service_pb2.ModelInferRequest(
            model_name=model, inputs=[tensor], raw_input_contents=[b"\0\0\x80?"]
        )
        try:
            await self.stub.ModelInfer(request)
        except grpc.aio.AioRpcError as error:
            return error.code(), OURS.lower() not in dict(error.trailing_metadata())
        return 200, True

    def either(self, chance: random.Random, model: str):
        return (self.over_http if chance.random() < 0.5 else self.over_grpc)(model)


async def _until(holds) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


async def before(front: TritonFront, script) -> None:
    """Run `script` with clients of `front`."""
    async with (
        aiohttp.ClientSession() as session,
        grpc.aio.insecure_channel(f"127.0.0.1:{front.grpc.port}") as channel,
    ):
        await script(Asks(front, session, channel))


async def test_t5_a_thousand_cancels_at_random_leave_the_ledger_exact(triton):
    chance = random.Random(7)

    async def script(asks: Asks) -> None:
        async def one_client() -> None:
            asking = asyncio.ensure_future(asks.either(chance, "quick"))
            patience = None if chance.random() < 0.25 else chance.uniform(0, 0.04)
            await asyncio.wait([asking], timeout=patience)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

        for _ in range(50):
            await asyncio.gather(*(one_client() for _ in range(20)))
        await front.check_nothing_is_left()
        assert front.facts.outcomes[Outcome.CANCELLED] > 100
        assert front.facts.outcomes[Outcome.COMPLETED] > 200
        assert front.facts.outcomes[Outcome.FAILED] == 0
        assert [await asks.over_http("quick"), await asks.over_grpc("quick")] == [(200, True)] * 2

    await asyncio.to_thread(triton.load, "quick")
    async with triton_front(triton) as front:
        await before(front, script)


async def test_a_model_unloaded_under_load_is_told_by_triton_itself_and_can_come_back(triton):
    chance, told = random.Random(3), Counter()

    async def script(asks: Asks) -> None:
        async def client() -> None:
            while not over.is_set():
                told[await asks.either(chance, "timed")] += 1

        over = asyncio.Event()
        clients = [asyncio.create_task(client()) for _ in range(6)]
        await _until(lambda: told.total() > 20)
        assert set(told) == {(200, True)}
        await asyncio.to_thread(triton.unload, "timed")
        await _until(lambda: len(told) > 1)
        await asyncio.to_thread(triton.load, "timed")
        over.set()
        await asyncio.gather(*clients)
        assert all(by_triton for _, by_triton in told)
        assert [await asks.over_http("timed"), await asks.over_grpc("timed")] == [(200, True)] * 2

    await asyncio.to_thread(triton.load, "timed")
    async with triton_front(triton) as front:
        await before(front, script)


@pytest.fixture
def mortal(tmp_path) -> Iterator[TritonServer]:
    """A server of this test's own."""
    models.timed(tmp_path, 0.2, 0.0)
    with TritonServer(tmp_path) as server:
        server.load("timed")
        yield server


@needs_triton
async def test_a_triton_that_is_killed_is_told_at_once_and_found_again(mortal):
    def come_back() -> None:
        mortal.start()
        mortal.load("timed")

    async def script(asks: Asks) -> None:
        calls = [asyncio.create_task(ask("timed")) for ask in (asks.over_http, asks.over_grpc) * 2]
        await _until(lambda: front.drive.snapshot().busy == 4)
        await asyncio.to_thread(mortal.kill)
        async with asyncio.timeout(5):
            told = await asyncio.gather(*calls)
        assert all(not by_triton for _, by_triton in told)
        assert {status for status, _ in told} <= {502, 503, grpc.StatusCode.UNAVAILABLE}
        await front.check_nothing_is_left()
        await asyncio.to_thread(come_back)
        async with asyncio.timeout(10):
            for ask in (asks.over_http, asks.over_grpc):
                while await ask("timed") != (200, True):
                    await asyncio.sleep(0.05)

    async with triton_front(mortal) as front:
        await before(front, script)
