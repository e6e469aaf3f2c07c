"""The running program: GPUs and signals in its metrics, and scaling that goes on without a signal."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.nvml_library import ABSENT, NvmlLibrary, can_be_built
from tests.fakes.program import Program
from tests.fakes.prometheus_server import scripted


@pytest.fixture
def run_program(tmp_path):
    made = []

    def run(**pool):
        made.append(Program(tmp_path, **pool))
        return made[-1].start()

    yield run
    for each in made:
        each.sweep()


async def metrics_until(running, name, **labels):
    """Read the program's metrics until they hold a sample; return all of them."""
    async with asyncio.timeout(20), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://127.0.0.1:{running.admin}/metrics") as answer:
                text = await answer.text()
            samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
            if any(each.name == name and labels.items() <= each.labels.items() for each in samples):
                return samples
            await asyncio.sleep(0.05)


def the_value(samples, name, **labels):
    (found,) = [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]
    return found


@pytest.mark.skipif(not can_be_built(), reason=ABSENT)
async def test_gpus_are_in_the_metrics_of_the_program(run_program, tmp_path, monkeypatch):
    library = NvmlLibrary(tmp_path)
    library.says("count 2", "gpu.0.util 95", "gpu.0.power_mw 250000", "gpu.1.error 15")
    for name in ("LD_LIBRARY_PATH", "FAKE_NVML_FILE"):
        monkeypatch.setenv(name, library.env[name])
    running = await run_program()
    samples = await metrics_until(running, "autoscaler_gpu_up")
    assert the_value(samples, "autoscaler_gpu_busy_ratio", gpu="0") == 0.95
    assert the_value(samples, "autoscaler_gpu_power_watts", gpu="0") == 250.0
    assert the_value(samples, "autoscaler_gpu_up", gpu="1") == 0.0
    assert "GPU is lost" in running.complaint()
    assert await running.end() == 0


async def test_a_counter_that_is_fed_as_a_gauge_is_told_and_scaling_goes_on(run_program):
    async def says(request):
        return web.Response(text="# TYPE jobs_total counter\njobs_total 5e9\n")

    async with scripted(says) as url:
        signals = {"backlog": {"metric": "jobs_total", "urls": [f"{url}/metrics"]}}
        running = await run_program(signals=signals, scaling={"replicas_max": 3})
        await running.until(lambda pool: pool["last_decision"] is not None)
        quarantined = "autoscaler_signal_quarantined"
        samples = await metrics_until(running, quarantined)
        async with asyncio.timeout(30):
            while not the_value(samples, quarantined, diagnosis="counter_as_gauge"):
                await asyncio.sleep(0.2)
                samples = await metrics_until(running, quarantined)
        assert the_value(samples, "autoscaler_signal_value", signal="backlog.jobs_total") == 5e9
        assert "say type: counter" in running.complaint()
        pool = await running.until(lambda pool: pool["last_decision"] is not None)
        assert pool["replicas"]["desired"] == 1  # a total of five thousand million moves nobody
        assert await running.end() == 0
