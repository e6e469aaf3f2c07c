"""Three sidecars, two controllers, one fleet: load that rises and falls, and the kills in between."""

import asyncio
import itertools
import re
import signal
from contextlib import AsyncExitStack

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.command_process import CommandProcess

SERVICE_TIME = 0.25


class FleetOfServers:
    """Model servers of this process, and who scales them: so many count as are asked for."""

    def __init__(self, servers: list[TestServer]):
        self.urls = [f"http://127.0.0.1:{server.port}" for server in servers]
        self.desired = 2
        self.asked: list[tuple[str, int]] = []
        """By whom, for how many."""

    async def scale(self, request: web.Request) -> web.Response:
        event = await request.json()
        self.desired = event["data"]["desired"]
        self.asked.append((request.query["by"], self.desired))
        return web.json_response({})

    async def fleet(self, request: web.Request) -> web.Response:
        return web.json_response({"ready": self.urls[: self.desired], "starting": 0})


async def model(request: web.Request) -> web.Response:
    if request.path != "/healthz":
        await request.read()
        await asyncio.sleep(SERVICE_TIME)
    return web.Response(text="ok")


def an_application(**handlers) -> web.Application:
    application = web.Application()
    for path, handler in handlers.items():
        application.router.add_route("*", "/{tail:.*}" if path == "any" else f"/{path}", handler)
    return application


class Load:
    """Sends so many requests a second to doors in turn; one whose door is gone goes to the next."""

    def __init__(self, doors: list[str]):
        self.doors, self.rate = doors, 0.0
        self.answers: list[int] = []
        self._turn = itertools.count()
        self._sent: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        async with aiohttp.ClientSession() as session:
            try:
                while True:
                    if self.rate:
                        self._sent.add(asyncio.create_task(self._post(session)))
                    await asyncio.sleep(1 / self.rate if self.rate else 0.05)
            finally:
                await asyncio.gather(*self._sent)

    async def _post(self, session: aiohttp.ClientSession) -> None:
        while True:
            door = self.doors[next(self._turn) % len(self.doors)]
            try:
                async with session.post(f"{door}/v", data=b"hello") as answer:
                    await answer.read()
                    self.answers.append(answer.status)
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)


async def until(condition, timeout: float = 20.0) -> None:
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.05)


@pytest.fixture
async def processes(tmp_path):
    made: list[CommandProcess] = []

    def make(command: str, name: str, **settings) -> CommandProcess:
        made.append(CommandProcess(tmp_path, command, name, **settings))
        return made[-1].launch()

    yield make
    for each in made:
        each.sweep()


async def leads(controller: CommandProcess) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{controller.admin_url}/metrics") as answer:
        return re.search(r"^autoscaler_leads 1", await answer.text(), re.MULTILINE) is not None


async def test_kills_at_the_peak_change_nothing_and_lose_nothing(processes, tmp_path):
    async with AsyncExitStack() as undo:
        servers = [
            await undo.enter_async_context(TestServer(an_application(any=model), host="127.0.0.1"))
            for _ in range(8)
        ]
        fleet = FleetOfServers(servers)
        application = an_application(scale=fleet.scale, fleet=fleet.fleet)
        receiver = await undo.enter_async_context(TestServer(application, host="127.0.0.1"))
        doors = [
            processes(
                "sidecar",
                f"sidecar-{place}",
                pools={
                    "chat": {
                        "slots_per_replica": 16,
                        "platform": {"kind": "static", "urls": [fleet.urls[place]]},
                    }
                },
            )
            for place in range(3)
        ]
        pool = {
            "slots_per_replica": 2,
            "objective": {"wait": "1s", "quantile": 0.9},
            "scaling": {"replicas_min": 2, "replicas_max": 8, "scale_down_hold": "3s"},
            "demand": {
                "kind": "list",
                "urls": [door.admin_url for door in doors],
                "interval": "250ms",
                "carry": "1s",
                "forget": "2s",
            },
        }

        def a_controller(name: str) -> CommandProcess:
            platform = {
                "kind": "webhook",
                "url": str(receiver.make_url(f"/scale?by={name}")),
                "status_url": str(receiver.make_url("/fleet")),
                "status_interval": "200ms",
                "probe_interval": "500ms",
                "cold_start_initial": "1s",
            }
            lock = {"lock_file": str(tmp_path / "leader.lock")}
            given = {"chat": {**pool, "platform": platform}}
            return processes("controller", name, control_interval="1s", leadership=lock, pools=given)

        both = {name: a_controller(name) for name in ("one", "other")}
        await asyncio.gather(*(each.ready() for each in (*doors, *both.values())))
        leading = [name for name, each in both.items() if await leads(each)]
        assert len(leading) == 1
        first = both.pop(leading[0])
        (standing_by, second), *_ = both.items()

        load = Load([door.url for door in doors])
        sending = asyncio.create_task(load.run())
        load.rate = 24.0  # 6 erlangs: at least 4 replicas of 2 slots
        await until(lambda: fleet.desired >= 4)
        assert {by for by, _ in fleet.asked} == set(leading)
        async with asyncio.timeout(10.0):
            while (await second.get("/api/status"))["pools"][0]["replicas"]["desired"] < 4:
                await asyncio.sleep(0.1)

        # the leader dies: nothing is lowered, and the other leads
        await first.end(signal.SIGKILL)
        before, asked = fleet.desired, len(fleet.asked)
        async with asyncio.timeout(15.0):
            while not await leads(second):
                await asyncio.sleep(0.1)
        await until(lambda: any(by == standing_by for by, _ in fleet.asked[asked:]))
        assert all(desired >= min(before, 4) for _, desired in fleet.asked[asked:])

        # a sidecar dies: what it did not tell is not taken for zero
        doors[2].process.kill()
        load.doors = [door.url for door in doors[:2]]
        asked = len(fleet.asked)
        await asyncio.sleep(1.8)  # carried for a second, then blind; given up after two
        assert all(desired >= 4 for _, desired in fleet.asked[asked:])
        assert fleet.desired >= 4

        # the load ends, and so does one sidecar, in order
        load.rate = 0.0
        assert await doors[1].end() == 0
        await until(lambda: fleet.desired <= 3)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert load.answers and set(load.answers) == {200}
        assert await second.end() == 0
        assert await doors[0].end() == 0


async def test_trouble_has_its_age_from_when_it_began_and_not_from_when_somebody_asks(processes):
    pool = {
        "demand": {"kind": "list", "urls": ["http://127.0.0.1:1"], "interval": "250ms"},
        "platform": {"kind": "keda", "urls": ["http://127.0.0.1:1"]},
    }
    controller = processes("controller", "alone", keda={"listen": "127.0.0.1:0"}, pools={"chat": pool})
    await controller.ready()
    await asyncio.sleep(2.5)
    (trouble,) = (await controller.get("/api/status"))["pools"][0]["troubles"]
    assert trouble["age"] > 0.5
