"""The client library of Triton works before the proxy as before Triton: it gets what Triton itself gives."""

import asyncio
import json
import queue
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tests.fakes.triton_clients import KINDS, Client, client_of
from tests.fakes.triton_program import TritonProgram
from tests.fakes.triton_server import TritonServer

LEFT = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
RIGHT = np.array([[1.0, 1.0], [0.5, 9.0]], np.float32)


@pytest.fixture(params=KINDS)
def client(request, program: TritonProgram) -> Iterator[Client]:
    with client_of(request.param, f"127.0.0.1:{program.data}", f"127.0.0.1:{program.grpc}") as client:
        yield client


@pytest.fixture
def direct(client: Client, triton: TritonServer) -> Iterator[Client]:
    """The same client, of Triton itself."""
    with client_of(client.kind, triton.url.removeprefix("http://"), triton.target) as direct:
        yield direct


@contextmanager
def refused() -> Iterator[list[tuple[str, str]]]:
    """Note code and words of the error that comes."""
    told: list[tuple[str, str]] = []
    with pytest.raises(InferenceServerException) as error:
        yield told
    told.append((error.value.status(), error.value.message()))


def summed(client: Client, *, binary: bool = True, **more):
    inputs = [client.tensor("LEFT", LEFT, binary=binary), client.tensor("RIGHT", RIGHT, binary=binary)]
    return client.infer("arithmetic", inputs, **more)


async def nothing_is_left(program: TritonProgram) -> None:
    await program.until(lambda pool: pool["slots"]["busy"] == pool["queue_depth"] == 0, timeout=10)
    pool = await program.until(lambda pool: True)
    assert (pool["slots_leaked"], pool["ledger_difference"]) == (0, 0)


# -- questions


def test_it_says_who_lives_and_is_ready(client, triton):
    triton.load("arithmetic")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("arithmetic")
    assert client.is_model_ready("arithmetic", "1")
    assert not client.is_model_ready("no_such_model")


@pytest.mark.parametrize(
    "question, of_model",
    [("get_server_metadata", False), ("get_model_metadata", True), ("get_model_config", True)],
)
def test_metadata_and_configuration_are_those_of_the_server(client, direct, triton, question, of_model):
    triton.load("arithmetic")
    model = ("arithmetic",) if of_model else ()
    assert client.told(question, *model) == direct.told(question, *model) != {}


def test_statistics_count_what_was_asked(client, triton):
    triton.load("arithmetic")

    def count() -> int:
        (model,) = client.told("get_inference_statistics", "arithmetic")["model_stats"]
        return int(model["inference_count"])

    before = count()
    summed(client)
    late = time.monotonic() + 5
    while count() == before and time.monotonic() < late:  # Triton counts after it has answered
        time.sleep(0.01)
    assert count() == before + 2  # rows


def test_models_are_listed_unloaded_and_loaded(client, direct, triton):
    model = f"comes_and_goes_{KINDS.index(client.kind)}"
    client.load_model(model)
    assert client.is_model_ready(model)
    assert _states(client.told("get_model_repository_index")) == _states(
        direct.told("get_model_repository_index")
    )
    client.unload_model(model)
    assert not client.is_model_ready(model)
    assert _states(client.told("get_model_repository_index"))[model] != "READY"
    with refused():
        client.load_model("no_such_model")


def _states(index) -> dict[str, str]:
    models = index.get("models", []) if isinstance(index, dict) else index
    return {model["name"]: model.get("state", "") for model in models}


# -- inference


@pytest.mark.parametrize("binary", [True, False])
def test_tensors_come_back_as_from_the_server(client, direct, triton, binary):
    triton.load("arithmetic")
    answers = [summed(each, binary=binary, request_id="7") for each in (client, direct)]
    for name in ("SUM", "GREATER", "PRODUCT"):
        ours, its = (answer.as_numpy(name) for answer in answers)
        assert ours.tobytes() == its.tobytes()
        assert (ours.dtype, ours.shape) == (its.dtype, its.shape)
    assert np.array_equal(answers[0].as_numpy("SUM"), LEFT + RIGHT)
    responses = [answer.get_response() for answer in answers]
    assert responses[0] == responses[1]


@pytest.mark.parametrize("binary", [True, False])
def test_only_the_outputs_that_were_asked_for_come(client, triton, binary):
    triton.load("arithmetic")
    answer = summed(client, outputs=[client.output("PRODUCT", binary=binary)])
    assert answer.as_numpy("PRODUCT").tolist() == [[3.0], [37.5]]
    assert answer.as_numpy("SUM") is None


@pytest.mark.parametrize("binary", [True, False])
def test_texts_of_any_length_and_script_pass(client, triton, binary):
    triton.load("upper_case")
    given = np.array([[b""], ["größe ✓".encode()], [b"x" * 10_000]], object)
    inputs = [client.tensor("TEXT", given, binary=binary)]
    outputs = [client.output("UPPER", binary=binary), client.output("LENGTH", binary=binary)]
    answer = client.infer("upper_case", inputs, outputs=outputs)
    upper = [
        each.encode() if isinstance(each, str) else each for each in answer.as_numpy("UPPER").reshape(-1)
    ]
    assert upper == [text.upper() for text in given.reshape(-1)]
    assert answer.as_numpy("LENGTH").reshape(-1).tolist() == [len(text) for text in given.reshape(-1)]


def test_compressed_messages_pass(client, triton):
    triton.load("arithmetic")
    if client.is_grpc:
        answer = summed(client, compression_algorithm="gzip")
    else:
        how = {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"}
        answer = summed(client, **how)
    assert np.array_equal(answer.as_numpy("SUM"), LEFT + RIGHT)


def test_what_is_asked_in_the_background_is_answered(client, triton):
    triton.load("arithmetic")
    inputs = [client.tensor("LEFT", LEFT), client.tensor("RIGHT", RIGHT)]
    if client.kind.endswith("aio"):

        async def ask() -> list:
            return await asyncio.gather(*(client.raw.infer("arithmetic", inputs) for _ in range(8)))

        answers = client.run(ask())
    elif client.kind == "http":
        asked = [client.async_infer("arithmetic", inputs) for _ in range(8)]
        answers = [each.get_result() for each in asked]
    else:
        came: queue.Queue = queue.Queue()
        for _ in range(8):
            client.async_infer("arithmetic", inputs, lambda result, error: came.put(error or result))
        answers = [came.get(timeout=10) for _ in range(8)]
    assert all(np.array_equal(answer.as_numpy("SUM"), LEFT + RIGHT) for answer in answers)


# -- errors


@pytest.mark.parametrize(
    "model, width", [("no_such_model", 2), ("arithmetic", 3), ("poisoned", 1)], ids=["none", "shape", "fails"]
)
def test_errors_are_the_servers_own_code_and_words(client, direct, triton, model, width):
    triton.load("arithmetic", "poisoned")
    told = []
    for each in (client, direct):
        values = np.full((1, width), -1.0, np.float32)
        names = ["INPUT"] if model == "poisoned" else ["LEFT", "RIGHT"]
        with refused() as said:
            each.infer(model, [each.tensor(name, values) for name in names])
        told += said
    assert told[0] == told[1]
    assert told[0][1]


def test_who_does_not_wait_frees_the_slot(client, program, triton):
    triton.load("slower")
    tensor = client.tensor("INPUT", np.zeros((1, 1), np.float32))
    if client.is_grpc:
        with refused() as told:
            client.infer("slower", [tensor], client_timeout=0.2)
        assert told[0][0] == "StatusCode.DEADLINE_EXCEEDED"
    elif client.kind == "http":
        with (
            client_of("http", f"127.0.0.1:{program.data}", "", network_timeout=0.2) as hasty,
            pytest.raises(TimeoutError),
        ):
            hasty.infer("slower", [tensor])
    else:

        async def hasty() -> None:
            async with asyncio.timeout(0.2):
                await client.raw.infer("slower", [tensor])

        with pytest.raises(TimeoutError):
            client.run(hasty())
    asyncio.run(asyncio.wait_for(nothing_is_left(program), 0.7))  # the model would take longer


# -- what the program tells of it


def test_a_call_is_in_the_live_table_while_it_runs_and_in_the_log_after(client, program, triton):
    triton.load("slow")
    tensor = client.tensor("INPUT", np.zeros((1, 1), np.float32))
    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(client.infer, "slow", [tensor], headers={"x-request-id": f"of-{client.kind}"})
        (live,) = asyncio.run(_calls_of(program, f"of-{client.kind}"))
        assert (live["state"], live["pool"]) == ("calling", "pool")
        assert live["path"].endswith("/ModelInfer" if client.is_grpc else "/slow/infer")
        asking.result()
    (line,) = asyncio.run(_lines_of(program, f"of-{client.kind}"))
    assert (line["status"], line["grpc_status"]) == (200, "OK" if client.is_grpc else "")
    assert line["service_seconds"] > 0.3


async def _calls_of(program: TritonProgram, id: str) -> list[dict]:
    async with asyncio.timeout(5):
        while True:
            table = (await program.get("/api/requests"))["requests"]
            if found := [each for each in table if each["id"] == id and each["replica"]]:
                return found
            await asyncio.sleep(0.01)


async def _lines_of(program: TritonProgram, id: str) -> list[dict]:
    async with asyncio.timeout(5):
        while True:
            lines = [json.loads(line) for line in program.access_log.read_text().splitlines()]
            if found := [line for line in lines if line["id"] == id]:
                return found
            await asyncio.sleep(0.01)


# -- streams


@pytest.mark.parametrize("client", ["grpc", "grpc.aio"], indirect=True)
def test_a_model_that_answers_many_times_streams(client, triton):
    triton.load("counts_up")
    tensor = client.tensor("COUNT", np.array([5], np.int32))
    if client.kind == "grpc.aio":
        answers = client.run(_streamed(client, [tensor], count=5))
    else:
        came: queue.Queue = queue.Queue()
        client.start_stream(lambda result, error: came.put((result, error)))
        client.async_stream_infer("counts_up", [tensor], enable_empty_final_response=True)
        answers = [came.get(timeout=10) for _ in range(6)]
        client.stop_stream()
        last, _ = answers.pop()  # the empty one, which only this client can ask for
        assert last.get_response().parameters["triton_final_response"].bool_param
    assert [error for _, error in answers] == [None] * 5
    assert [int(result.as_numpy("NUMBER")[0]) for result, _ in answers] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("client", ["grpc"], indirect=True)
def test_t19_the_end_of_the_answers_is_told_to_whoever_asks_for_it_and_to_nobody_else(client, triton):
    """A model may give no answer at all; the marker passes as it is, and none is added."""
    triton.load("counts_up")
    none, one = (client.tensor("COUNT", np.array([count], np.int32)) for count in (0, 1))
    came: queue.Queue = queue.Queue()
    client.start_stream(lambda result, error: came.put((result, error)))
    client.async_stream_infer("counts_up", [none], request_id="asks", enable_empty_final_response=True)
    client.async_stream_infer("counts_up", [none], request_id="does not ask")
    client.async_stream_infer("counts_up", [one], request_id="one", enable_empty_final_response=False)
    told = [came.get(timeout=10) for _ in range(2)]
    client.stop_stream()
    assert came.empty()
    seen = {result.get_response().id: result.get_response() for result, error in told if error is None}
    assert set(seen) == {"asks", "one"}
    assert seen["asks"].parameters["triton_final_response"].bool_param
    assert not seen["asks"].outputs
    assert len(seen["one"].outputs) == 1


@pytest.mark.parametrize("client", ["grpc", "grpc.aio"], indirect=True)
def test_an_error_in_a_stream_is_told_and_the_stream_goes_on(client, triton):
    triton.load("counts_up")
    good = client.tensor("COUNT", np.array([1], np.int32))
    if client.kind == "grpc":
        came: queue.Queue = queue.Queue()
        client.start_stream(lambda result, error: came.put((result, error)))
        client.async_stream_infer("no_such_model", [good])
        client.async_stream_infer("counts_up", [good])
        answers = [came.get(timeout=10) for _ in range(2)]
        client.stop_stream()
    else:
        answers = client.run(_streamed(client, [good], count=2, before="no_such_model"))
    assert "no_such_model" in answers[0][1].message()
    assert answers[1][1] is None
    assert answers[1][0].as_numpy("NUMBER").tolist() == [0]


async def _streamed(client: Client, inputs: list, count: int, before: str | None = None) -> list:
    async def requests():
        if before is not None:
            yield {"model_name": before, "inputs": inputs}
        yield {"model_name": "counts_up", "inputs": inputs}
        await over.wait()

    over, answers = asyncio.Event(), []
    async with asyncio.timeout(10):
        async for answer in client.raw.stream_infer(requests()):
            answers.append(answer)
            if len(answers) == count:
                over.set()
    return answers


def test_nothing_is_left_of_all_this(program):
    asyncio.run(nothing_is_left(program))
