"""`autoscaler sidecar` as its users run it: small, in order at the end, and telling what came."""

import asyncio
import os
import signal
import subprocess
import sys

import aiohttp
import psutil
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.proxy.tenants.key import digest_of, new_key
from load.free_port import free_port
from tests.fakes.command_process import CommandProcess
from tests.fakes.program import ROOT

RESIDENT_MAX = 60e6
HEAVY = ("numpy", "scipy", "statsmodels", "pandas", "matplotlib", "grpc", "pydantic", "kubernetes_asyncio")


@pytest.fixture
async def server():
    """A model server of this process; `server.hold` keeps answers back."""
    hold = asyncio.Event()
    hold.set()

    async def answer(request: web.Request) -> web.Response:
        if request.path != "/healthz":
            await request.read()
            await hold.wait()
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", answer)
    async with TestServer(application, host="127.0.0.1") as running:
        running.hold = hold
        yield running
        hold.set()


@pytest.fixture
def sidecar(tmp_path, server):
    made = []

    def make(**settings) -> CommandProcess:
        platform = {"kind": "static", "urls": [f"http://127.0.0.1:{server.port}"]}
        pools = {"chat": {"slots_per_replica": 4, "platform": platform}}
        made.append(CommandProcess(tmp_path, "sidecar", "sidecar", **{"pools": pools, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.sweep()


async def told(running: CommandProcess, condition, timeout: float = 10.0, **asked):
    """Return what it tells as soon as `condition` is true of it."""
    query = "&".join(f"{key}={value}" for key, value in asked.items())
    async with asyncio.timeout(timeout):
        while not condition(report := await running.get(f"/api/observations?{query}")):
            await asyncio.sleep(0.05)
    return report


def sum_of(report, field: str) -> float:
    return sum(each["observation"][field] for each in report["pools"]["chat"]["intervals"])


async def test_it_serves_is_small_and_tells_its_demand_second_by_second(sidecar):
    running = await sidecar().launch().ready()
    assert psutil.Process(running.process.pid).memory_info().rss <= RESIDENT_MAX
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.post(f"{running.url}/v", data=b"x") as answer:
                assert answer.status == 200
    report = await told(running, lambda report: sum_of(report, "completions") == 3)
    assert sum_of(report, "arrivals") == 3
    assert report["pools"]["chat"]["slots"] == 4
    numbers = [each["sequence"] for each in report["pools"]["chat"]["intervals"]]
    assert numbers == list(range(1, len(numbers) + 1))
    later = await told(running, lambda report: report["sequence"] > numbers[-1], since=numbers[-1])
    assert later["pools"]["chat"]["intervals"][0]["sequence"] == numbers[-1] + 1
    assert sum_of(later, "arrivals") == 0
    async with aiohttp.ClientSession() as session, session.get(f"{running.admin_url}/metrics") as answer:
        assert 'autoscaler_arrivals_total{pool="chat"} 3.0' in await answer.text()
    assert await running.end() == 0


async def test_on_sigterm_it_is_not_ready_ends_what_it_holds_and_says_that_it_leaves(sidecar, server):
    running = await sidecar().launch().ready()
    server.hold.clear()
    async with aiohttp.ClientSession() as session:
        held = asyncio.create_task(session.post(f"{running.url}/v", data=b"x"))
        await told(running, lambda report: report["pools"]["chat"]["busy"] == 1)
        running.process.send_signal(signal.SIGTERM)
        report = await told(running, lambda report: report["leaving"], reader="test")
        assert not report["ready"]
        assert running.process.poll() is None
        server.hold.set()
        assert (await held).status == 200
    await told(running, lambda report: report["pools"]["chat"]["busy"] == 0, reader="test")
    async with asyncio.timeout(10.0):
        while running.process.poll() is None:
            await asyncio.sleep(0.05)
    assert running.process.returncode == 0


async def test_a_sidecar_that_starts_anew_is_another_incarnation(sidecar):
    running = await sidecar().launch().ready()
    first = await running.get("/api/observations")
    await running.end(signal.SIGKILL)
    await running.launch().ready()
    again = await running.get(f"/api/observations?since=999&incarnation={first['incarnation']}")
    assert again["incarnation"] != first["incarnation"]
    await running.end()


async def test_it_is_not_ready_without_its_server(sidecar):
    url = f"http://127.0.0.1:{free_port()}"
    running = sidecar(pools={"chat": {"platform": {"kind": "static", "urls": [url]}}}).launch()
    report = await told_as_soon_as_it_listens(running)
    assert report["not_ready"] == [f"pool chat: its server is not ready ({url})"]
    assert await running.end() == 0


async def told_as_soon_as_it_listens(running: CommandProcess):
    async with asyncio.timeout(20.0):
        while True:
            try:
                return await running.get("/api/observations")
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)


async def test_a_taken_port_is_a_clear_error(sidecar):
    running = sidecar()
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", running.data)
    async with taken:
        running.launch()
        async with asyncio.timeout(20.0):
            while running.process.poll() is None:
                await asyncio.sleep(0.05)
    said = running.said.read_text()
    assert running.process.returncode == 2
    assert str(running.data) in said and "Traceback" not in said


async def test_an_order_that_breaks_off_or_never_ends_does_no_harm(sidecar):
    running = sidecar(pools={"chat": {"platform": {"kind": "controller"}}}).launch()
    await told_as_soon_as_it_listens(running)
    half = b"PUT /api/shares/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
    writers = [(await asyncio.open_connection("127.0.0.1", running.admin))[1] for _ in range(2)]
    for writer in writers:
        writer.write(half)
        await writer.drain()
    await running.get("/healthz")  # by now they have been read
    broken, stuck = writers
    broken.transport.abort()
    assert await running.end(timeout=40.0) == 0
    stuck.close()
    assert "exc_type" not in running.said.read_text()


async def test_it_takes_no_modules_of_the_folder_in_which_it_was_started(sidecar, tmp_path):
    running = sidecar()
    (tmp_path / "uvloop.py").write_text("raise SystemExit('a file of somebody else was run')")
    command = [sys.executable, "-P", "-m", "autoscaler", "sidecar", "-c", str(running.config)]
    with running.said.open("ab") as said:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        running.process = subprocess.Popen(command, cwd=tmp_path, stderr=said, env=environment)
    await running.ready()
    assert await running.end() == 0


def test_what_it_imports_is_little():
    script = (
        "import sys; import autoscaler.cli.sidecar_process; import autoscaler.model_servers.plain_http; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_keys_are_checked_and_a_changed_file_is_followed_by_another_process(sidecar, tmp_path):
    keys, first, second = tmp_path / "tenants.yaml", new_key(), new_key()

    def let_in(digest: str) -> None:
        keys.write_text(f"tenants: {{acme: {{keys: ['{digest}']}}}}")
        keys.chmod(0o600)

    async def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{running.url}/v", data=b"hello", headers=headers) as answer,
        ):
            return answer.status

    let_in(digest_of(first))
    running = await sidecar(tenants={"keys_file": str(keys)}).launch().ready()
    assert (await status(first), await status(second)) == (200, 401)
    let_in("nonsense")
    async with asyncio.timeout(15.0):
        while "changed files cannot be used" not in running.said.read_text():
            await asyncio.sleep(0.1)
    assert await status(first) == 200
    let_in(digest_of(second))
    async with asyncio.timeout(15.0):
        while await status(second) != 200:
            await asyncio.sleep(0.1)
    assert await status(first) == 401
    assert psutil.Process(running.process.pid).memory_info().rss < RESIDENT_MAX
