"""Requests that share calls to a real Triton server: every client gets what it would have got alone."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tritonclient import http as of_http
from tritonclient.utils import np_to_triton_dtype

from autoscaler.clock import SystemClock
from autoscaler.dispatch import QueueOptions
from autoscaler.kserve.read_http import HEADER_LENGTH
from autoscaler.model_servers.triton import Triton
from autoscaler.ports import Replica
from autoscaler.proxy.batch.batching import Batching
from autoscaler.proxy.batch.options import BatchingOptions
from tests.fakes.front import Front, front
from tests.fakes.triton_models import (
    POISON,
    arithmetic,
    identities,
    ignores_rows,
    poisoned,
    timed,
    upper_case,
)
from tests.fakes.triton_server import TritonServer, needs_triton
from tests.kserve.tensors import KINDS, arrays

pytestmark = needs_triton


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    repository: Path = tmp_path_factory.mktemp("models")
    identities(repository)
    for write in (arithmetic, upper_case, ignores_rows, poisoned):
        write(repository)
    timed(repository, 0.05, 0.001)
    timed(repository, 0.02, 0.001, name="its_own_batcher", more="dynamic_batching {}")
    with TritonServer(repository) as server:
        yield server


@asynccontextmanager
async def proxy(
    triton: TritonServer, model: str, *models: str, batched: list[int] | None = None
) -> AsyncIterator[Front]:
    """The proxy before one slot of the server; `batched` takes in the rows of each merged call."""
    triton.load(model, *models)
    server = Triton(model)
    rows: list[int] = [] if batched is None else batched
    batching = Batching(BatchingOptions(), server, model, SystemClock(), rows.append)
    queue = QueueOptions(clock_stops_max=0.0, refuse_late=False)
    async with front(Replica("t", triton.url, 1), batching=batching, queue=queue) as this:
        async with asyncio.timeout(10):
            while not batching.rows_per_call and model != "its_own_batcher":
                await asyncio.sleep(0.005)
        try:
            yield this
        finally:
            await server.close()


async def ask(url: str, model: str, body: bytes, length: int | None) -> tuple[int, bytes, int | None]:
    fields = {} if length is None else {HEADER_LENGTH: str(length)}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v2/models/{model}/infer", data=body, headers=fields) as answer,
    ):
        said = answer.headers.get(HEADER_LENGTH)
        return answer.status, await answer.read(), None if said is None else int(said)


def request(
    values: np.ndarray, *, binary: bool, name: str = "INPUT", out: str = "OUTPUT"
) -> tuple[bytes, int | None]:
    one = of_http.InferInput(name, values.shape, np_to_triton_dtype(values.dtype))
    one.set_data_from_numpy(values, binary_data=binary)
    asked = [of_http.InferRequestedOutput(out, binary_data=binary)]
    return of_http.InferenceServerClient.generate_request_body([one], asked)


def tensor(answer: tuple[int, bytes, int | None], out: str = "OUTPUT") -> np.ndarray:
    status, body, length = answer
    assert status == 200, body
    return of_http.InferResult.from_response_body(body, header_length=length).as_numpy(out)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype == object:
        plain = [[v if isinstance(v, bytes) else v.encode() for v in each.ravel()] for each in (one, other)]
        return one.shape == other.shape and plain[0] == plain[1]
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def name_of(kind: str) -> str:
    if kind in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"):
        return f"identity_{'u' * (kind[0] == 'u')}int{8 * int(kind[1])}"
    return {"?": "identity_bool", "O": "identity_bytes"}.get(kind) or f"identity_fp{8 * int(kind[1])}"


@pytest.mark.parametrize("kind", KINDS)
async def test_tensors_of_every_datatype_are_what_triton_gives_directly(triton: TritonServer, kind: str):
    model = name_of(kind)
    batched: list[int] = []
    async with proxy(triton, model, batched=batched) as it:

        @settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(data=st.data())
        def examples(data: st.DataObject) -> None:
            width = data.draw(st.integers(1, 4))
            items = [
                (data.draw(arrays(kind, data.draw(st.integers(1, 3)), width)), data.draw(st.booleans()))
                for _ in range(6)
            ]
            bodies = [request(values, binary=binary or kind == "f2") for values, binary in items]
            found.append((items, bodies))

        found: list = []
        examples()
        for items, bodies in found:
            url = f"http://127.0.0.1:{it.port}"
            through = await asyncio.gather(*(ask(url, model, *body) for body in bodies))
            directly = [await ask(triton.url, model, *body) for body in bodies]
            for (values, _), one, other in zip(items, through, directly, strict=True):
                if kind == "f8":  # in JSON, Triton reads FP64 to within a few units of the last digit only
                    np.testing.assert_allclose(tensor(one), tensor(other), rtol=1e-14)
                else:
                    assert same(tensor(one), tensor(other))
                    assert same(tensor(one), values)
    assert batched, "nothing was merged, so nothing was shown"


async def test_each_gets_the_outputs_that_it_asked_for_in_the_form_and_order_of_triton(triton: TritonServer):
    """A12, in JSON, so that names, order, shapes and numbers can be compared at once."""
    wanted = [["SUM"], ["PRODUCT"], ["PRODUCT", "SUM"], ["GREATER", "SUM"], []]
    batched: list[int] = []
    async with proxy(triton, "arithmetic", batched=batched) as it:
        bodies = []
        for i, names in enumerate(wanted):
            inputs = [
                {"name": name, "shape": [1, 2], "datatype": "FP32", "data": [i + 0.1, 7.7]}
                for name in ("LEFT", "RIGHT")
            ]
            asked = {"outputs": [{"name": name} for name in names]} if names else {}
            bodies.append(json.dumps({"id": f"n{i}", "inputs": inputs, **asked}).encode())
        url = f"http://127.0.0.1:{it.port}"
        through = await asyncio.gather(*(ask(url, "arithmetic", body, None) for body in bodies))
        directly = [await ask(triton.url, "arithmetic", body, None) for body in bodies]
        assert [json.loads(one[1]) for one in through] == [json.loads(other[1]) for other in directly]
    assert batched


async def test_strings_and_their_lengths(triton: TritonServer):  # A13
    words = [b"a", b"bb", "Éllo".encode(), b""]
    batched: list[int] = []
    async with proxy(triton, "upper_case", batched=batched) as it:
        bodies = [
            request(np.array([[word]], object), binary=True, name="TEXT", out="UPPER") for word in words
        ]
        url = f"http://127.0.0.1:{it.port}"
        answers = await asyncio.gather(*(ask(url, "upper_case", *body) for body in bodies))
        assert [tensor(answer, "UPPER")[0, 0] for answer in answers] == [
            w.decode().upper().encode() for w in words
        ]
    assert batched


async def test_a_model_that_ignores_rows_is_left_alone(triton: TritonServer):  # T13
    batched: list[int] = []
    async with proxy(triton, "ignores_rows", batched=batched) as it:
        url = f"http://127.0.0.1:{it.port}"
        for _ in range(2):
            bodies = [request(np.full((1, 1), float(i), "f4"), binary=True) for i in range(6)]
            answers = await asyncio.gather(*(ask(url, "ignores_rows", *body) for body in bodies))
            assert [tensor(answer)[0, 0] for answer in answers] == [0, 1, 2, 3, 4, 5]
    assert len(batched) == 1


async def test_one_bad_item_fails_alone(triton: TritonServer):  # R5
    batched: list[int] = []
    async with proxy(triton, "poisoned", batched=batched) as it:
        url = f"http://127.0.0.1:{it.port}"
        values = [1.0, 2.0, POISON, 3.0, 4.0]
        bodies = [request(np.full((1, 1), value, "f4"), binary=True) for value in values]
        answers = await asyncio.gather(*(ask(url, "poisoned", *body) for body in bodies))
        assert [answer[0] for answer in answers] == [200, 200, 500, 200, 200]
        assert answers[2][1] == (await ask(triton.url, "poisoned", *bodies[2]))[1]
    assert batched


async def test_requests_wait_together_while_the_model_works(triton: TritonServer):
    """50 ms + 1 ms a row: seven that come during the first call need one more, not seven."""
    batched: list[int] = []
    async with proxy(triton, "timed", batched=batched) as it:
        url = f"http://127.0.0.1:{it.port}"
        bodies = [request(np.full((1, 1), float(i), "f4"), binary=True) for i in range(8)]
        answers = await asyncio.gather(*(ask(url, "timed", *body) for body in bodies))
        assert [tensor(answer)[0, 0] for answer in answers] == list(range(8))
    assert sum(batched) >= 6


async def test_where_triton_batches_itself_requests_go_alone(triton: TritonServer):
    batched: list[int] = []
    async with proxy(triton, "its_own_batcher", batched=batched) as it:
        url = f"http://127.0.0.1:{it.port}"
        bodies = [request(np.full((1, 1), float(i), "f4"), binary=True) for i in range(6)]
        answers = await asyncio.gather(*(ask(url, "its_own_batcher", *body) for body in bodies))
        assert [tensor(answer)[0, 0] for answer in answers] == list(range(6))
    assert not batched


# What Triton refuses it refuses for that item only, whatever waits beside it.
BAD = {
    "T12 no rows": {"shape": [0, 1], "data": []},
    "T12 rows of nothing": {"shape": [2, 0], "data": []},
    "a datatype of another model": {"datatype": "INT32"},
    "another rank": {"shape": [1, 1, 1]},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
async def test_t9_t12_a_bad_request_is_answered_as_triton_does_and_disturbs_nobody(
    triton: TritonServer, change
):
    async with proxy(triton, "identity_fp32") as it:
        url = f"http://127.0.0.1:{it.port}"
        one = {"name": "INPUT", "shape": [1, 1], "datatype": "FP32", "data": [1.0]}
        good, bad = (json.dumps({"inputs": [each]}).encode() for each in (one, one | change))
        answers = await asyncio.gather(
            *(ask(url, "identity_fp32", body, None) for body in (good, bad, good, bad))
        )
        directly = await ask(triton.url, "identity_fp32", bad, None)
        assert [answer[0] for answer in answers] == [200, directly[0], 200, directly[0]]
        assert answers[1] == answers[3] == directly


async def test_a_thousand_cancels_at_random_leave_the_ledger_exact(triton: TritonServer):
    """Half of them leave while they wait or are in a batch; `front` checks the ledger at its end."""
    rng = random.Random(3)
    batched: list[int] = []
    async with proxy(triton, "identity_fp32", batched=batched) as it, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{it.port}/v2/models/identity_fp32/infer"
        counts = {"answered": 0, "left": 0}

        async def one(number: int) -> None:
            data, length = request(np.full((1, 2), float(number), "f4"), binary=True)
            try:
                async with asyncio.timeout(rng.uniform(0.001, 0.05) if number % 2 else 10):
                    fields = {HEADER_LENGTH: str(length)}
                    async with session.post(url, data=data, headers=fields) as answer:
                        got = (answer.status, await answer.read(), int(answer.headers[HEADER_LENGTH]))
                assert tensor(got)[0, 0] == number
                counts["answered"] += 1
            except TimeoutError:
                counts["left"] += 1

        for begin in range(0, 1000, 50):
            await asyncio.gather(*(one(number) for number in range(begin, begin + 50)))
        assert counts["answered"] >= 500
        assert counts["left"] >= 100
    assert batched


async def test_a_model_that_is_unloaded_under_load_is_told_and_comes_back(triton: TritonServer):
    async with proxy(triton, "upper_case") as it:
        url = f"http://127.0.0.1:{it.port}"
        data, length = request(np.array([[b"a"]], object), binary=True, name="TEXT", out="UPPER")

        async def load(seconds: float) -> list[int]:
            statuses, ends = [], asyncio.get_running_loop().time() + seconds
            while asyncio.get_running_loop().time() < ends:
                statuses.append((await ask(url, "upper_case", data, length))[0])
            return statuses

        loading = [asyncio.create_task(load(1.0)) for _ in range(6)]
        await asyncio.sleep(0.3)
        await asyncio.to_thread(triton.unload, "upper_case")
        statuses = [status for each in loading for status in await each]
        assert set(statuses) <= {200, 400, 404, 503}
        assert statuses[-1] != 200
        await asyncio.to_thread(triton.load, "upper_case")
        async with asyncio.timeout(10):
            while (await ask(url, "upper_case", data, length))[0] != 200:
                await asyncio.sleep(0.05)


async def test_a_triton_that_is_killed_in_a_batch_is_told_and_serves_again(triton: TritonServer):
    async with proxy(triton, "timed") as it:
        url = f"http://127.0.0.1:{it.port}"
        bodies = [request(np.full((1, 1), float(i), "f4"), binary=True) for i in range(6)]
        asking = [asyncio.create_task(ask(url, "timed", *body)) for body in bodies]
        await it.until(running=5)  # the first is done, the others are in a batch
        await asyncio.to_thread(triton.kill)
        statuses = [(await each)[0] for each in asking]
        assert statuses.count(502) == 5
        await asyncio.to_thread(triton.start)
        await asyncio.to_thread(triton.load, "timed")
        async with asyncio.timeout(30):  # the replica may have been ejected for a while
            while (await ask(url, "timed", *bodies[0]))[0] != 200:
                await asyncio.sleep(0.1)
