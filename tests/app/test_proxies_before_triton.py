"""Two proxies before a real Triton server that a controller tells them of; asked by its own client."""

import asyncio

import numpy as np
import pytest
import tritonclient.grpc.aio as over_grpc
import tritonclient.http.aio as over_http

from load.free_port import free_port
from tests.fakes import triton_models
from tests.fakes.command_process import CommandProcess
from tests.fakes.triton_server import TritonServer, needs_triton

pytestmark = needs_triton


@pytest.fixture
async def proxies(tmp_path):
    """Proxies, and the gRPC port of each."""
    repository = tmp_path / "models"
    repository.mkdir()
    model = triton_models.identity(repository)
    made: list[CommandProcess] = []
    with TritonServer(repository) as server:
        server.load(model)
        ports = [free_port() for _ in range(2)]
        for place, port in enumerate(ports):
            pool = {"server": {"kind": "triton", "model": model}, "platform": {"kind": "controller"}}
            listen = {"listen": f"127.0.0.1:{port}"}
            made.append(CommandProcess(tmp_path, "sidecar", f"proxy-{place}", grpc=listen, pools={"m": pool}))
        doors = [each.admin_url for each in made]
        pool = {
            "server": {"kind": "triton", "model": model, "grpc_port": server.grpc_port},
            "slots_per_replica": 4,
            "platform": {"kind": "static", "urls": [server.url]},
            "demand": {"kind": "list", "doors": "proxies", "urls": doors},
        }
        controller = CommandProcess(tmp_path, "controller", "controller", pools={"m": pool})
        try:
            for each in (*made, controller):
                each.launch()
            for each in (*made, controller):
                await each.ready()
            yield model, made, ports
        finally:
            for each in (*made, controller):
                each.sweep()


async def test_both_ways_in_lead_to_the_server_by_the_slots_that_were_told(proxies):
    model, processes, ports = proxies
    numbers = np.arange(6, dtype=np.float32).reshape(1, 6)
    async with asyncio.timeout(20.0):
        while [await slots(each) for each in processes] != [2, 2]:
            await asyncio.sleep(0.1)
    for process, port in zip(processes, ports, strict=True):
        async with over_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
            assert await client.is_model_ready(model)
            tensor = over_grpc.InferInput("INPUT", numbers.shape, "FP32")
            tensor.set_data_from_numpy(numbers)
            answers = await asyncio.gather(*(client.infer(model, [tensor]) for _ in range(5)))
        assert all((answer.as_numpy("OUTPUT") == numbers).all() for answer in answers)
        async with over_http.InferenceServerClient(f"127.0.0.1:{process.data}") as client:
            tensor = over_http.InferInput("INPUT", numbers.shape, "FP32")
            tensor.set_data_from_numpy(numbers)
            answer = await client.infer(model, [tensor])
        assert (answer.as_numpy("OUTPUT") == numbers).all()
        assert (await process.get("/api/status"))["pools"][0]["slots_leaked"] == 0


async def slots(process: CommandProcess) -> int:
    held = await process.get("/api/shares/m")
    return sum(each["share"] for each in held["replicas"].values())
