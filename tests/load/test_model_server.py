"""The plain model server, as a process and on the wire."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from load.free_port import free_port
from load.model_server import main, parse


@asynccontextmanager
async def a_model_server(*options):
    """Yield its address and process; the server accepts connections, whether it is ready or not."""
    port = free_port()
    command = [sys.executable, "-m", "load.model_server", "--port", str(port), "--seed", "1", *options]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(20):
            while not await accepts(port):
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}", process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def accepts(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_request_takes_its_service_time_and_waits_for_a_slot_before():
    options = ("--slots", "2", "--service-time", "0.2", "--scv", "0")
    async with a_model_server(*options) as (url, _), aiohttp.ClientSession() as session:

        async def infer():
            began = time.monotonic()
            async with session.post(f"{url}/v1/anything", data=b"four") as answer:
                return await answer.json(), time.monotonic() - began

        answers = await asyncio.gather(*(infer() for _ in range(4)))
    assert all(answer == {"bytes": 4, "service_time": 0.2} for answer, _ in answers)
    times = sorted(seconds for _, seconds in answers)
    assert times[:2] == pytest.approx([0.2, 0.2], abs=0.15)
    assert times[2:] == pytest.approx([0.4, 0.4], abs=0.15)


async def test_it_is_not_ready_before_its_start_delay_is_over():
    async with a_model_server("--start-delay", "0.5") as (url, _), aiohttp.ClientSession() as session:

        async def statuses():
            async with session.get(f"{url}/healthz") as health, session.post(url) as infer:
                return health.status, infer.status

        assert await statuses() == (503, 503)
        await asyncio.sleep(0.6)
        async with session.get(f"{url}/healthz") as health:
            assert health.status == 200


async def test_sigterm_lets_it_answer_what_it_has():
    options = ("--service-time", "0.4", "--scv", "0")
    async with a_model_server(*options) as (url, process), aiohttp.ClientSession() as session:
        running = asyncio.create_task(session.post(url))
        await asyncio.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert (await running).status == 200
        async with asyncio.timeout(5):
            assert await process.wait() == 0


def test_a_port_in_use_is_told_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "load.model_server", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    said = f"cannot listen on 127.0.0.1:{port}: Address already in use; give another --host or --port\n"
    assert done.stderr == said


@pytest.mark.parametrize(
    "words, said",
    [
        (["--port", "99999"], "--port: '99999': write a whole number between 1 and 65535"),
        (["--port", "-1"], "--port: '-1': write a whole number between 1 and 65535"),
        (["--port", "1", "--seed", "-1"], "--seed: '-1': write a whole number between 0 and"),
        (["--port", "1", "--slots", "1.5"], "--slots: '1.5': write a whole number between 1 and"),
        (["--port", "1", "--scv", "nan"], "--scv: 'nan': write a number between 0 and 100"),
        (["--port", "1", "--service-time", "1e300"], "'1e300': write a number between 0 and 86,400"),
    ],
)
def test_nonsense_is_named_with_its_remedy(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("host", ["nohost.invalid", f"{'a' * 300}.invalid"])
def test_a_host_that_is_none_is_told_in_one_line(host, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["model_server", "--port", str(free_port()), "--host", host])
    assert main() == 2
    said = capsys.readouterr().err
    assert said.startswith(f"cannot listen on {host}:")
    assert "Unknown error" not in said
    assert said.endswith("; give another --host or --port\n")
