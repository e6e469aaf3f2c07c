"""The metrics of a real Triton server, before and after it served requests."""

import asyncio
import subprocess
from pathlib import Path

import aiohttp
import pytest

from autoscaler.clock import SystemClock
from autoscaler.telemetry.scrape.presets import PRESETS
from autoscaler.telemetry.scrape.scraper import Exporter, Scraper
from load.free_port import free_port
from load.triton.install import is_installed
from load.triton.serve import EmulatedAccelerator, model_repository, server_command, server_environment

HOME = Path(__file__).parents[2] / ".triton"
READY_WITHIN = 60.0
INPUT = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["A quiet room, please."]}


@pytest.fixture
def triton():
    """A running server; its ports for requests and for metrics."""
    accelerator, port, metrics = EmulatedAccelerator(), free_port(), free_port()
    home = HOME.resolve()
    command = server_command(home, port, model_repository(home, accelerator.slots))
    command.remove("--allow-metrics=false")
    command += ["--metrics-address=127.0.0.1", f"--metrics-port={metrics}", "--metrics-interval-ms=100"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, env=server_environment(home, accelerator), stdout=quiet, stderr=quiet)
    yield port, metrics
    server.terminate()
    server.wait(20)


@pytest.mark.skipif(not is_installed(HOME), reason="Triton is not installed; `make triton` does it")
async def test_a_real_triton_is_read_by_its_preset(triton):
    port, metrics = triton
    exporter = Exporter(f"http://127.0.0.1:{metrics}/metrics", PRESETS["triton"])
    scraper = Scraper(SystemClock())
    await scraper.start()
    async with aiohttp.ClientSession() as session:
        await until_ready(session, f"http://127.0.0.1:{port}/v2/health/ready")
        await scraper.scrape([exporter])
        for _ in range(5):
            url = f"http://127.0.0.1:{port}/v2/models/embed/infer"
            async with session.post(url, json={"inputs": [INPUT]}) as answer:
                assert answer.status == 200
        served = await until_counted(scraper, exporter)
    await scraper.close()
    assert served.declared == "counter"
    assert served.value > 0
    assert exporter.readings["requests_waiting"].value == 0
    # There is no GPU here, and that is said of each of its signals, and of no other.
    faults = {name for name, reading in exporter.readings.items() if reading.fault}
    assert faults <= {"gpu_busy_ratio", "gpu_memory_used_bytes", "gpu_power_watts"}


async def until_ready(session, url):
    async with asyncio.timeout(READY_WITHIN):
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


async def until_counted(scraper, exporter):
    """Scrape until the requests are in the metrics, which the server renews now and then."""
    async with asyncio.timeout(10):
        while True:
            await scraper.scrape([exporter])
            served = exporter.readings["requests_served_rate"]
            if served.value > 0:
                return served
            await asyncio.sleep(0.1)
