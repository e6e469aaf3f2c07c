"""Three proxies before one fleet, two controllers: no server gets more than its slots, whoever is killed."""

import asyncio
from contextlib import AsyncExitStack

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.command_process import CommandProcess

SLOTS, SERVERS, SERVICE_TIME = 4, 4, 0.2


class CountingServer:
    """A model server that knows how many requests it ever had at once."""

    def __init__(self):
        self.running = self.most = self.served = 0

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/healthz":
            return web.Response()
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await request.read()
            await asyncio.sleep(SERVICE_TIME)
        finally:
            self.running -= 1
        self.served += 1
        return web.Response(text="served")


class Clients:
    """So many clients at one proxy, each with one request after the other; what goes wrong is kept."""

    def __init__(self, proxy: CommandProcess, count: int):
        self.proxy, self.count = proxy, count
        self.served, self.troubles = 0, []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(self._one(session) for _ in range(self.count)))

    async def _one(self, session: aiohttp.ClientSession) -> None:
        while True:
            try:
                async with session.post(f"{self.proxy.url}/v", data=b"hello") as answer:
                    text = await answer.text()
            except aiohttp.ClientError as error:
                self.troubles.append(repr(error))
                return
            if answer.status != 200:
                self.troubles.append(f"{answer.status} {text}")
            self.served += 1

    async def are_served(self, rate: float) -> None:
        """Wait until so many are served a second, over a while; what else runs here makes it fewer."""

        async def measured() -> bool:
            before = self.served
            await asyncio.sleep(2.0)
            return (self.served - before) / 2.0 > rate

        await until(measured, timeout=30.0)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def shares(proxies: list[CommandProcess]) -> list[int]:
    """Return the slots that each proxy has."""
    held = [await proxy.get("/api/shares/chat") for proxy in proxies]
    return [sum(each["share"] for each in one["replicas"].values()) for one in held]


async def until(condition, timeout: float = 20.0) -> None:
    async with asyncio.timeout(timeout):
        while not await condition():
            await asyncio.sleep(0.1)


@pytest.fixture
async def fleet(tmp_path):
    """Servers, proxies and controllers; the proxies are told their shares."""
    made: list[CommandProcess] = []

    def launch(command: str, name: str, **settings) -> CommandProcess:
        made.append(CommandProcess(tmp_path, command, name, **settings))
        return made[-1].launch()

    async with AsyncExitStack() as undo:
        undo.callback(lambda: [each.sweep() for each in made])
        servers = [CountingServer() for _ in range(SERVERS)]
        urls = []
        for server in servers:
            application = web.Application()
            application.router.add_route("*", "/{tail:.*}", server.answer)
            running = await undo.enter_async_context(TestServer(application, host="127.0.0.1"))
            urls.append(f"http://127.0.0.1:{running.port}")
        proxies = [
            launch("sidecar", f"proxy-{place}", pools={"chat": {"platform": {"kind": "controller"}}})
            for place in range(3)
        ]
        pool = {
            "slots_per_replica": SLOTS,
            "platform": {"kind": "static", "urls": urls},
            "demand": {
                "kind": "list",
                "doors": "proxies",
                "interval": "500ms",
                "urls": [proxy.admin_url for proxy in proxies],
            },
        }
        controllers = [
            launch(
                "controller",
                f"controller-{place}",
                control_interval="1s",
                leadership={"lock_file": str(tmp_path / "lead")},
                pools={"chat": pool},
            )
            for place in range(2)
        ]
        for each in (*proxies, *controllers):
            await each.ready()
        yield servers, proxies, controllers


async def leads(controller: CommandProcess) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{controller.admin_url}/metrics") as answer:
        return "autoscaler_leads 1.0" in await answer.text()


async def test_slots_follow_the_load_and_no_server_is_overbooked(fleet):
    servers, proxies, controllers = fleet
    await until(lambda: _are_alike(proxies))  # they are idle

    busy = Clients(proxies[0], 12)  # more than a third of the slots
    await until(lambda: _has(proxies, 0, 12))
    await busy.are_served(0.8 * 12 / SERVICE_TIME)  # none of them waits for a slot

    leader = controllers[0] if await leads(controllers[0]) else controllers[1]
    other = controllers[1 - controllers.index(leader)]
    await leader.end(how=9)  # at the peak
    assert await _has(proxies, 0, 12)
    await busy.are_served(0.8 * 12 / SERVICE_TIME)

    second = Clients(proxies[1], 12)  # now there is less than they need
    await until(lambda: leads(other), timeout=15.0)
    await until(lambda: _has(proxies, 1, 7))
    for clients in (busy, second):
        await clients.are_served(0.7 * SLOTS * SERVERS / 2 / SERVICE_TIME)

    await proxies[0].end(how=9)
    await until(lambda: _has(proxies[1:], 0, 12))
    await second.are_served(0.8 * 12 / SERVICE_TIME)

    await busy.stop()
    await second.stop()
    assert second.troubles == []
    assert len(busy.troubles) <= 12  # those whose proxy was killed
    assert max(server.most for server in servers) == SLOTS
    assert other.process.poll() is None


async def _has(proxies: list[CommandProcess], place: int, slots: int) -> bool:
    return (await shares(proxies))[place] >= slots


async def _are_alike(proxies: list[CommandProcess]) -> bool:
    held = await shares(proxies)
    return sum(held) == SLOTS * SERVERS and min(held) >= SLOTS * SERVERS // len(proxies)
