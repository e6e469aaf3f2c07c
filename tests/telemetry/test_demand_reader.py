"""A reader at real doors: admin listeners on the loopback."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.clock import SystemClock
from autoscaler.dashboard.admin import AdminSources, admin_application
from autoscaler.scaling.doors import Doors, MergeOptions
from autoscaler.telemetry.demand.find import Listed
from autoscaler.telemetry.demand.options import ListedDoors
from autoscaler.telemetry.demand.reader import DoorReader, ReaderOptions, is_worth_saying
from autoscaler.telemetry.status import Status
from load.free_port import free_port
from tests.telemetry.test_demand_recent import Door


class Reading:
    """A reader of doors at `urls`, and what it knows."""

    def __init__(self, urls, pool="chat", **options):
        clock = SystemClock()
        self.doors = Doors(MergeOptions(), clock.now())
        finder = Listed(ListedDoors(tuple(urls)))
        self.reader = DoorReader(pool, self.doors, finder, ReaderOptions(**options), clock)
        self.clock = clock

    async def once(self):
        async with self.reader.session() as session:
            await self.reader.look()
            await self.reader.read(session)
        return self

    def troubles(self):
        return [self.reader.trouble(address) for address in self.doors.addresses]


@pytest.fixture
async def listen():
    """Serve doors, or whole applications."""
    servers = []

    async def listening(what) -> str:
        if isinstance(what, Door):
            status = Status("0", 0.0, 0.0, 0.0, ())
            what = admin_application(
                AdminSources(
                    lambda: status,
                    lambda pool, limit: [],
                    list,
                    lambda accept: (b"", "text/plain"),
                    observations=what.demand.report,
                )
            )
        servers.append(TestServer(what, host="127.0.0.1"))
        await servers[-1].start_server()
        return f"http://127.0.0.1:{servers[-1].port}"

    yield listening
    for server in servers:
        await server.close()


def an_answer(status: int, text: str) -> web.Application:
    async def answer(request):
        return web.Response(status=status, text=text)

    application = web.Application()
    application.router.add_get("/api/observations", answer)
    return application


async def test_what_doors_tell_is_counted_once_however_often_they_are_read(listen):
    doors = [Door(SystemClock(), name, length=0.01) for name in ("this", "that")]
    reading = Reading([await listen(door) for door in doors])
    for _ in range(3):
        await asyncio.sleep(0.01)
        for door in doors:
            door.demand.close()
        await reading.once()
        await reading.once()
    seen = reading.doors.close(reading.clock.now(), 0.0)
    assert (seen.arrivals, seen.rejected, seen.is_partial) == (3 * 4 * 2, 6, False)
    assert sum(reading.doors.busy().values()) == 4


async def test_a_slow_door_delays_no_other_and_has_not_answered(listen):
    async def for_ever(request):
        await asyncio.sleep(30)

    slow = web.Application()
    slow.router.add_get("/api/observations", for_ever)
    quick = Door(SystemClock())
    quick.demand.close()
    reading = Reading([await listen(slow), await listen(quick)], timeout=0.2)
    async with asyncio.timeout(5.0):
        await reading.once()
    assert [bool(trouble) for trouble in reading.troubles()] == [True, False]
    assert reading.doors.close(reading.clock.now(), 0.0).arrivals == 4


@pytest.mark.parametrize(
    "status, text, why",
    [
        (401, "no", "set token_file"),
        (404, "nothing here", "name the admin listener"),
        (200, "hello", "not JSON"),
        (200, '{"incarnation": 5}', "DemandReport"),
    ],
)
async def test_what_is_no_report_is_told_with_a_remedy(listen, status, text, why):
    reading = await Reading([await listen(an_answer(status, text))]).once()
    assert why in reading.troubles()[0]


async def test_one_that_says_something_else_each_time_does_not_fill_the_log(listen, capsys):
    count = 0

    async def answer(request):
        nonlocal count
        count += 1
        return web.Response(status=503, text=f"request {count} failed")

    ill = web.Application()
    ill.router.add_get("/api/observations", answer)
    reading = Reading([await listen(ill)], interval=0.01)
    running = asyncio.create_task(reading.reader.run())
    async with asyncio.timeout(20.0):
        while count < 10:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert capsys.readouterr().out.count("demand cannot be read") == 1


def test_after_a_while_another_trouble_is_said_and_a_first_one_always():
    said_at = {}
    times = [(0.0, True), (1.0, False), (59.0, False), (60.0, False), (61.0, False), (62.0, True)]
    said = [is_worth_saying(said_at, "a", now, is_first=is_first) for now, is_first in times]
    assert said == [True, False, False, True, False, True]


async def test_another_name_of_the_pool_is_told(listen):
    door = Door()
    reading = await Reading([await listen(door)], pool="chit").once()
    assert "no pool 'chit', but chat" in reading.troubles()[0]


async def test_why_a_door_did_not_answer_is_told_in_words(listen):
    door, absent = await listen(Door()), f"http://127.0.0.1:{free_port()}"
    reading = await Reading([door, absent]).once()
    assert reading.reader.troubles == {absent: f"{absent.removeprefix('http://')}: connection refused"}


async def test_a_port_where_nobody_listens_is_told_apart_from_silence():
    reading = await Reading([f"http://127.0.0.1:{free_port()}"]).once()
    (door,) = reading.doors._doors.values()
    assert door.refused_since is not None


async def test_the_token_is_sent_and_read_anew(listen, tmp_path):
    given = []

    async def answer(request):
        given.append(request.headers.get("Authorization"))
        return web.Response(status=401)

    application = web.Application()
    application.router.add_get("/api/observations", answer)
    token = tmp_path / "token"
    reading = Reading([await listen(application)], token_file=token)
    await reading.once()
    assert "cannot be read" in reading.troubles()[0]
    for text in ("one\n", "two\n"):
        token.write_text(text)
        await reading.once()
    assert given == ["Bearer one", "Bearer two"]


async def test_a_number_that_is_none_is_refused(listen):
    url = await listen(Door())
    reading = Reading([url])
    async with reading.reader.session() as session, session.get(f"{url}/api/observations?since=x") as answer:
        assert answer.status == 400
        assert "since: the number of an interval" in await answer.text()


@pytest.mark.parametrize("name", ["interval", "timeout", "look_interval"])
def test_no_time_at_all_is_refused(name):
    with pytest.raises(ValueError, match=f"need {name} > 0"):
        ReaderOptions(**{name: 0.0})


async def test_it_reads_now_and_then_and_ends_when_it_is_cancelled(listen):
    door = Door(SystemClock(), length=0.01)
    reading = Reading([await listen(door)], interval=0.01, look_interval=0.01)
    running = asyncio.create_task(reading.reader.run())
    async with asyncio.timeout(5.0):
        while not reading.doors.busy():
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
