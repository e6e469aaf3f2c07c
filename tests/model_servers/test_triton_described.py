"""What a real Triton says of its models, asked over HTTP and over gRPC; what is made of it."""

import asyncio
import time
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from autoscaler.dispatch.learned_line import LearnedLine
from autoscaler.domain.model import ModelDescription, TensorDescription
from autoscaler.model_servers.triton import Triton
from autoscaler.model_servers.triton.described import slots_of
from autoscaler.settings import load, model_server
from tests.fakes import triton_models as models
from tests.fakes.triton_server import TritonServer, needs_triton

BATCHING = (
    "dynamic_batching { preferred_batch_size: [8, 4] max_queue_delay_microseconds: 500 "
    "default_queue_policy { max_queue_size: 6 } } instance_group [{ kind: KIND_CPU, count: 2 }]"
)
SEQUENCES = "sequence_batching { max_sequence_idle_microseconds: 5000000 }"
ALPHA, BETA = 0.020, 0.005
ONE_ROW_OF_TWO = TensorDescription("LEFT", "FP32", (2,))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    models.timed(repository, ALPHA, BETA, more=BATCHING)
    models.timed(repository, ALPHA, BETA, name="plain")
    models.arithmetic(repository)
    models.upper_case(repository)
    models.counts_up(repository)
    models.identity(repository, "FP32", 0, more=SEQUENCES)
    with TritonServer(repository) as server:
        server.load("timed", "plain", "arithmetic", "upper_case", "counts_up", "identity_fp32_flat")
        yield server


@pytest.fixture(params=["http", "grpc"])
async def triton(request, server):
    """How it is asked makes no difference."""
    asked = Triton(timeout=10.0)
    if request.param == "grpc":
        asked = Triton.over_grpc(lambda url: server.target, timeout=10.0)
    yield asked
    await asked.close()


@needs_triton
async def test_a_model_that_triton_batches_is_described_in_full(server, triton):
    assert await triton.describe(server.url, "timed") == ModelDescription(
        name="timed",
        version="",
        batch_size_max=8,
        inputs=(TensorDescription("INPUT", "FP32", (-1,)),),
        outputs=(TensorDescription("OUTPUT", "FP32", (-1,)),),
        instances=2,
        is_batched_by_server=True,
        batch_sizes_preferred=(4, 8),
        batch_delay=pytest.approx(0.0005),
        queue_max=6,
    )


@needs_triton
async def test_one_that_it_does_not_batch_has_several_tensors(server, triton):
    described = await triton.describe(server.url, "arithmetic")
    assert described.inputs == (ONE_ROW_OF_TWO, replace(ONE_ROW_OF_TWO, name="RIGHT"))
    assert [(out.name, out.datatype, out.shape) for out in described.outputs] == [
        ("SUM", "FP32", (2,)),
        ("GREATER", "BOOL", (2,)),
        ("PRODUCT", "FP32", (1,)),
    ]
    assert not described.is_batched_by_server
    assert described.batch_size_max == 8


@needs_triton
async def test_text_has_the_datatype_that_requests_call_it_by(server, triton):
    described = await triton.describe(server.url, "upper_case")
    assert described.inputs[0].datatype == "BYTES"


@needs_triton
async def test_decoupled_models_and_sequences_are_known_for_what_they_are(server, triton):
    decoupled = await triton.describe(server.url, "counts_up")
    assert (decoupled.is_decoupled, decoupled.has_sequences, decoupled.batch_size_max) == (True, False, 0)
    in_order = await triton.describe(server.url, "identity_fp32_flat")
    assert (in_order.is_decoupled, in_order.has_sequences) == (False, True)


@needs_triton
async def test_a_version_is_asked_for_by_its_number(server, triton):
    assert (await triton.describe(server.url, "timed", "1")).version == "1"
    assert await triton.describe(server.url, "timed", "7") is None


@needs_triton
async def test_nothing_is_said_of_a_model_that_is_not_there(server, triton):
    assert await triton.describe(server.url, "none") is None
    assert await triton.statistics(server.url, "none") == ()


@needs_triton
async def test_times_by_size_teach_the_line_of_the_model(server, triton):
    line, now = LearnedLine(), 0.0
    async with aiohttp.ClientSession() as session:
        for rows in [1, 2, 4, 8] * 3:
            await infer(session, server, "plain", rows)
    told = await triton.statistics(server.url, "plain")
    assert [row.size for row in told] == [1, 2, 4, 8]
    assert all(row.count >= 3 for row in told)
    assert all(row.seconds >= ALPHA + BETA * row.size for row in told)
    for row in told:
        for _ in range(min(row.count, 5)):
            line.observe(row.size, row.seconds, now)
    assert line.line is None or line.seconds(8) > line.seconds(1)


async def infer(session, server, model, rows):
    body = {"inputs": [{"name": "INPUT", "datatype": "FP32", "shape": [rows, 1], "data": [1.0] * rows}]}
    async with session.post(f"{server.url}/v2/models/{model}/infer", json=body) as answer:
        assert answer.status == 200, await answer.text()


@needs_triton
async def test_slots_are_its_instances_and_fill_its_batcher(server):
    for model, merges, slots in [
        ("plain", False, 1),
        ("timed", False, 2 * 8 + 6),  # and what its own queue takes
        ("timed", True, 2),
        ("none", False, None),
    ]:
        asked = Triton(model, merges=merges, timeout=10.0)
        assert await asked.slots(server.url) == slots
        await asked.close()


@needs_triton
async def test_a_model_is_unloaded_and_loaded_and_its_state_is_told(server, triton):
    assert (await triton.index(server.url))["upper_case"] == "READY"
    assert await triton.unload(server.url, "upper_case") is None
    async with asyncio.timeout(20):
        while (await triton.index(server.url)).get("upper_case") != "UNAVAILABLE":
            await asyncio.sleep(0.05)
    assert await triton.load(server.url, "upper_case") is None
    assert (await triton.index(server.url))["upper_case"] == "READY"


@needs_triton
async def test_why_a_model_cannot_be_loaded_is_told(server, triton):
    assert "failed to load 'none'" in await triton.load(server.url, "none")


@needs_triton
@pytest.mark.parametrize("over_grpc", [False, True])
async def test_readiness_loads_the_model_if_it_shall(server, over_grpc):
    async def is_ready(asked, wanted):
        give_up = time.monotonic() + 20
        while await asked.ready(server.url) is not wanted and time.monotonic() < give_up:
            await asyncio.sleep(0.05)
        return await asked.ready(server.url)

    def asks(**more):
        if over_grpc:
            return Triton.over_grpc(lambda url: server.target, "arithmetic", 10.0, **more)
        return Triton("arithmetic", 10.0, **more)

    patient, eager = asks(), asks(load_model=True)
    assert await patient.ready(server.url)
    await patient.unload(server.url, "arithmetic")
    assert not await is_ready(patient, False)
    assert await is_ready(eager, True)
    await patient.close()
    await eager.close()


@needs_triton
async def test_nobody_there_says_nothing(unused_tcp_port):
    url, target = f"http://127.0.0.1:{unused_tcp_port}", f"127.0.0.1:{unused_tcp_port}"
    for asked in (Triton("m", 0.5), Triton.over_grpc(lambda url: target, "m", 0.5)):
        assert not await asked.ready(url)
        assert await asked.describe(url, "m") is None
        assert await asked.statistics(url, "m") == ()
        assert await asked.index(url) == {}
        assert await asked.slots(url) is None
        assert await asked.load(url, "m")
        await asked.close()


async def answered(answers):
    """A server that answers paths as told."""

    async def handle(request):
        status, text = answers.get(request.path, (404, ""))
        return web.Response(status=status, text=text)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"


METADATA = """{"name": "m", "versions": ["1"], "platform": "x",
 "inputs": [{"name": "a", "datatype": "INT64", "shape": [-1, 3]}], "outputs": []}"""


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"/v2/models/m": (200, METADATA)}, (-1, 3)),  # a server without configurations
        ({"/v2/models/m": (200, METADATA), "/v2/models/m/config": (200, "<html>")}, (-1, 3)),
        ({"/v2/models/m": (200, METADATA.replace('"x"', "null").replace("[]", "null"))}, (-1, 3)),
        ({"/v2/models/m/config": (200, '{"max_batch_size": "many"}')}, None),
        ({"/v2/models/m/config": (200, "[]")}, None),
        ({"/v2/models/m/config": (200, '{"input": 3}'), "/v2/models/m": (200, "7")}, None),
        ({"/v2/models/m": (500, METADATA)}, None),
    ],
)
async def test_other_servers_are_believed_as_far_as_they_can_be_read(answers, expected):
    runner, url = await answered(answers)
    asked = Triton()
    described = await asked.describe(url, "m")
    await asked.close()
    await runner.cleanup()
    assert (None if described is None else described.inputs[0].shape) == expected
    assert described is None or (described.batch_size_max, described.instances) == (0, 0)


async def test_unknown_words_of_a_newer_server_change_nothing():
    config = """{"name": "m", "max_batch_size": 4, "new": {"x": 1}, "instance_group":
      [{"kind": "KIND_GPU", "count": 2, "gpus": [0, 1]}, {"kind": "KIND_NPU", "count": 1, "passive": true}],
      "input": [{"name": "a", "data_type": "TYPE_FP4", "dims": ["2"], "optional": true,
                 "allow_ragged_batch": true}], "output": []}"""
    runner, url = await answered({"/v2/models/m/config": (200, config)})
    asked = Triton()
    described = await asked.describe(url, "m")
    await asked.close()
    await runner.cleanup()
    assert described.inputs == (TensorDescription("a", "", (2,), is_optional=True, is_ragged=True),)
    assert described.instances == 4  # two on each GPU


def test_slots_of_an_ensemble_are_not_told():
    ensemble = ModelDescription("m", "", 8, (), (), instances=0)
    assert slots_of(ensemble, merged_here=False) is None


def test_without_a_bound_of_its_queue_one_batch_waits_to_be_formed():
    model = ModelDescription("m", "", 8, (), (), instances=3, is_batched_by_server=True)
    assert slots_of(model, merged_here=False) == 3 * 8 + 8


def test_only_a_model_with_a_name_can_be_loaded():
    with pytest.raises(ValueError, match="load_model needs a model; name it"):
        Triton(load_model=True)


@needs_triton
async def test_a_server_whose_http_port_is_closed_is_asked_at_its_grpc_port(
    server, tmp_path, unused_tcp_port
):
    file = tmp_path / "f.yaml"
    file.write_text(
        f"""pools:
              a:
                server: {{kind: triton, model: plain, probe_over: grpc, grpc_port: {server.grpc_port}}}
                slots_per_replica: auto
                platform: {{kind: static, urls: [http://127.0.0.1:{unused_tcp_port}]}}"""
    )
    pool = load(file, {}).pools["a"]
    asked = model_server(pool.server, pool.route.tls, grpc_tls=pool.grpc_tls)
    (url,) = pool.platform.urls
    assert await asked.ready(url)
    assert await asked.slots(url) == 1
    await asked.close()
    assert not await asked.ready(url)
