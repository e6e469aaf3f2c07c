"""A controller and its proxies, by real requests: shares follow the load, and no replica is overbooked."""

import asyncio
from contextlib import AsyncExitStack
from math import inf

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.clock import SystemClock
from autoscaler.ports import Replica
from autoscaler.scaling.doors import Doors, MergeOptions
from autoscaler.sharing import teller
from autoscaler.sharing.routes import shares_routes
from autoscaler.sharing.teller import Teller
from autoscaler.sharing.told_fleet import ToldFleet, ToldOptions
from autoscaler.telemetry.demand.find import Listed
from autoscaler.telemetry.demand.options import ListedDoors
from autoscaler.telemetry.demand.reader import DoorReader, ReaderOptions
from tests.sharing.test_told_fleet import Path, Servers


class Proxy:
    """A fleet that is told by requests to a port of its own; the test says what runs on it."""

    def __init__(self):
        self.path, self.servers, self.is_stuck = Path(), Servers(), False
        self.late: asyncio.Event | None = None
        self.nonsense: bytes | None = None
        self.puts = 0
        self.begin()

    def begin(self) -> None:
        """Begin as a process that has heard nothing."""
        options = ToldOptions(probe_interval=0.01, probe_failures=2)
        self.fleet = ToldFleet(options, self.servers, SystemClock(), self.path)

    def take_orders_late(self) -> asyncio.Event:
        """Let the next order come in, also one that nobody waits for any more, when the event is set."""
        self.late = asyncio.Event()
        return self.late

    async def listen(self, port: int = 0) -> None:
        application = web.Application(middlewares=[self._sticks])
        application.add_routes(shares_routes({"chat": self.fleet}))
        self.server = TestServer(application, host="127.0.0.1", port=port)
        await self.server.start_server()
        await self.fleet.start(self.path)

    async def restart(self) -> None:
        port = self.server.port
        await self.end()
        self.path = Path()
        self.begin()
        await self.listen(port)

    async def end(self) -> None:
        await self.fleet.stop()
        await self.server.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def shares(self) -> dict[str, int]:
        return {name: each.share for name, each in self.fleet.held().replicas.items()}

    @web.middleware
    async def _sticks(self, request, handler):
        while self.is_stuck:
            await asyncio.sleep(0.01)
        if self.nonsense is not None:
            return web.Response(body=self.nonsense, headers={"ETag": '"x-1"'})
        if request.method == "PUT":
            self.puts += 1
            late, self.late = self.late, None
            if late is not None:
                await request.read()
                return await asyncio.shield(self._late(late, handler(request)))
        return await handler(request)

    async def _late(self, late: asyncio.Event, handled):
        await late.wait()
        return await handled


class Leads:
    """A lead that the test gives and takes."""

    is_leader, leader = True, "this one"

    async def run(self) -> None:
        await asyncio.Event().wait()


class World:
    """Proxies before replicas `r0`, `r1`, … and a controller that looks when it is told to."""

    def __init__(self, proxies: list[Proxy]):
        self.proxies, self.woken, self.unlisted = proxies, 0, set()
        self.lead = Leads()
        self.replicas: dict[str, Replica] | None = {
            f"r{number}": Replica(f"r{number}", f"http://r{number}:8000", 8) for number in range(2)
        }
        self.urls = [proxy.url for proxy in proxies]
        self.begin()

    def begin(self, carry: float = 30.0, forget: float = 300.0) -> None:
        """Begin as a controller that knows nothing."""
        clock, merge = SystemClock(), MergeOptions(carry, forget)
        self.doors = Doors(merge, clock.now())
        self.doors.listed(self.urls, clock.now())
        reader = DoorReader("chat", self.doors, Listed(ListedDoors(tuple(self.urls))), ReaderOptions(), clock)
        self.teller = Teller(
            "chat",
            self.doors,
            reader,
            lambda: self.replicas,
            lambda replica_id: replica_id not in self.unlisted,
            lambda: inf,
            self.wake,
            merge,
            self.lead,
            clock,
        )
        self.session = reader.session()

    async def look(self, times: int = 1) -> list[int]:
        """Look so many times; return the slots that each proxy has then."""
        for _ in range(times):
            await self.teller.look(self.session)
            await asyncio.sleep(0.02)
            self.check()
        return self.totals()

    def totals(self) -> list[int]:
        return [sum(proxy.shares().values()) for proxy in self.proxies]

    def wake(self) -> None:
        self.woken += 1

    async def comes_late(self, order: asyncio.Event, first: Proxy, second: Proxy) -> None:
        """Let an order to `first`, which uses what it has, come in when the rest has gone to `second`."""
        first.path.busy, first.path.waiting = first.shares(), 0
        second.path.waiting = 16 - sum(first.shares().values())
        await self.look()
        order.set()
        await asyncio.sleep(0.05)
        assert sum(self.totals()) == 16
        self.check()

    def check(self) -> None:
        for replica_id, replica in (self.replicas or {}).items():
            held = [
                max(proxy.shares().get(replica_id, 0), proxy.path.busy.get(replica_id, 0))
                for proxy in self.proxies
            ]
            assert sum(held) <= replica.slots or not replica.slots, f"{replica_id} is overbooked: {held}"


@pytest.fixture
async def world(monkeypatch):
    monkeypatch.setattr(teller, "_PATIENCE", teller.aiohttp.ClientTimeout(total=0.2))
    async with AsyncExitStack() as undo:
        proxies = [Proxy() for _ in range(3)]
        for proxy in proxies:
            await proxy.listen()
            undo.push_async_callback(proxy.end)
        world = World(proxies)
        yield world
        await world.session.close()
        for proxy in proxies:
            proxy.is_stuck = False


class TestDividing:
    async def test_idle_proxies_get_the_same(self, world):
        await world.look()  # they get to know the replicas
        assert sorted(await world.look()) == [5, 5, 6]

    async def test_shares_follow_the_load_and_first_is_given_up_what_others_get(self, world):
        busy = world.proxies[0]
        await world.look(2)
        busy.path.busy, busy.path.waiting = busy.shares(), 20
        assert (await world.look())[0] == 16  # in one look
        busy.path.busy, busy.path.waiting = {}, 0
        world.proxies[1].path.waiting = 30
        assert (await world.look(2))[1] == 16

    async def test_what_is_in_use_is_given_to_others_when_it_is_free(self, world):
        first, second, _ = world.proxies
        await world.look()
        first.path.waiting = 30
        await world.look(2)
        first.path.busy, first.path.waiting = first.shares(), 0
        second.path.waiting = 30
        held = (await world.look(2))[1]
        assert held < 9
        first.path.busy = {}
        assert (await world.look())[1] > held + 3

    async def test_where_nothing_changes_nobody_is_told_anything(self, world):
        await world.look(3)
        before = [proxy.puts for proxy in world.proxies]
        await world.look(5)
        assert [proxy.puts for proxy in world.proxies] == before

    async def test_a_replica_that_drains_keeps_what_runs_and_gets_nothing_new(self, world):
        await world.look(2)
        world.replicas["r0"] = Replica("r0", "http://r0:8000", 0)
        await world.look()
        assert all(proxy.shares()["r0"] == 0 for proxy in world.proxies)
        assert all(proxy.path.ready["r0"].slots == 0 for proxy in world.proxies)
        del world.replicas["r0"]
        await world.look()
        assert all("r0" not in proxy.shares() for proxy in world.proxies)

    async def test_a_replica_that_is_not_listed_any_more_gets_nothing_new_though_it_answers(self, world):
        await world.look(2)
        del world.replicas["r0"]
        world.unlisted = {"r0"}
        await world.look()
        assert all("r0" not in proxy.shares() for proxy in world.proxies)

    async def test_a_fleet_of_none_is_told_too(self, world):
        world.replicas = {}
        await world.look()
        assert [proxy.fleet.told for proxy in world.proxies] == [0, 0, 0]

    async def test_who_waits_for_the_first_replica_wakes_the_pool(self, world):
        await world.look(2)
        world.replicas = {}
        for proxy in world.proxies:
            proxy.servers.away = {"http://r0:8000", "http://r1:8000"}
        await asyncio.sleep(0.1)
        await world.look(2)
        assert world.woken == 0
        world.proxies[1].path.waiting = 1
        await world.look()
        assert world.woken == 1

    async def test_busy_slots_are_summed_by_replica(self, world):
        await world.look(2)
        world.proxies[0].path.busy = {"r0": 1}
        world.proxies[1].path.busy = {"r0": 2, "r1": 1}
        await world.look()
        assert world.teller.busy_slots() == {"r0": 3, "r1": 1}
        world.proxies[0].path.waiting, world.proxies[2].path.waiting = 1, 4
        await world.look()
        assert world.teller.waiting == 5
        assert sum(world.teller.shares().values()) == 16


class TestWhoIsSilent:
    async def test_keeps_what_it_holds_and_nobody_else_gets_it(self, world):
        await world.look(2)
        silent = world.proxies[0]
        held, silent.is_stuck = sum(silent.shares().values()), True
        world.proxies[1].path.waiting = 50
        assert (await world.look(3))[1] == 16 - held
        silent.is_stuck = False
        assert (await world.look(2))[1] == 16

    async def test_an_order_that_was_not_confirmed_counts_either_way(self, world):
        await world.look(2)
        first, second, _ = world.proxies
        first.path.waiting = 50
        second.is_stuck = True
        await world.look(2)
        second.is_stuck = False
        second.path.waiting, first.path.waiting = 50, 0
        await world.look(3)

    async def test_one_that_ended_has_given_its_slots_back_before(self, world):
        await world.look(2)
        world.proxies[0].path.closing = True
        await world.look(2)
        await world.proxies[0].end()
        world.proxies.pop(0)
        assert sum(world.totals()) == 16

    async def test_one_that_leaves_and_is_silent_keeps_what_it_uses(self, world):
        await world.look(2)
        leaving, other, _ = world.proxies
        leaving.path.busy, leaving.path.closing = dict(leaving.shares()), True
        await world.look()
        leaving.is_stuck, other.path.waiting = True, 50
        await world.look(4)  # none of which may overbook
        assert sum(world.totals()) <= 16

    async def test_an_order_that_comes_late_finds_that_its_slots_are_held_for_it(self, world):
        await world.look(2)
        first, second, _ = world.proxies
        first.path.waiting, late = 50, first.take_orders_late()
        await world.look()  # nobody answers: was it taken in?
        await world.comes_late(late, first, second)

    async def test_one_that_was_killed_gives_its_slots_back_when_connections_are_refused(self, world):
        await world.look(2)
        await world.proxies.pop(0).end()
        assert sum(await world.look()) < 16
        assert sum(await world.look(2)) == 16

    async def test_one_that_is_not_listed_any_more_is_forgotten(self, world):
        await world.session.close()
        world.begin(carry=1.0)
        await world.look(2)
        world.proxies[0].is_stuck = True
        await world.look()
        world.doors._doors.pop(world.urls[0])
        world.proxies.pop(0)
        assert sum(await world.look(2)) < 16  # it may be at work still
        await asyncio.sleep(0.8)
        assert sum(await world.look(2)) == 16

    async def test_one_that_begins_anew_is_told_anew(self, world):
        await world.look(2)
        await world.proxies[0].restart()
        assert world.totals()[0] == 0
        assert min(await world.look(3)) >= 5


class TestWhoTalksNonsense:
    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"[" * 100_000,
            b"x" * 2_000_000,
            b'{"waiting": -1}',
            b'{"waiting": 1%s}' % (b"0" * 400),
            b'{"gone": {"r0": 1%s}}' % (b"0" * 400),
            b'{"replicas": {"r0": {"url": "", "share": -9, "busy": 0, "is_ready": true}}}',
            b'{"is_told": true, "replicas": {"": {"url": "", "share": 1, "busy": 0, "is_ready": true}}}',
        ],
    )
    async def test_it_harms_nobody_else(self, world, answer):
        await world.look(2)
        world.proxies.pop(0).nonsense = answer
        await world.look(2)
        world.proxies[0].path.waiting = 50
        assert (await world.look(2))[0] > 8


class TestWhoLeads:
    async def test_one_that_does_not_lead_tells_nobody(self, world):
        world.lead.is_leader = False
        assert await world.look(2) == [0, 0, 0]

    async def test_one_that_does_not_know_the_fleet_tells_nobody(self, world):
        await world.look(2)
        before, world.replicas = world.totals(), None
        assert await world.look(2) == before

    async def test_another_goes_on_from_what_the_proxies_have(self, world):
        world.proxies[0].path.waiting = 9
        await world.look(2)
        before = world.totals()
        await world.session.close()
        world.begin()
        assert await world.look(2) == before

    async def test_what_one_that_was_not_heard_yet_may_hold_is_not_given_away(self, world):
        await world.look(2)
        silent = world.proxies[0]
        held, silent.is_stuck = sum(silent.shares().values()), True
        await world.session.close()
        world.begin()
        world.proxies[1].path.waiting = 50
        assert (await world.look(3))[1] == 16 - held

    async def test_for_no_longer_than_demand_is_carried(self, world):
        await world.look(2)
        gone = world.proxies.pop(0)
        gone.is_stuck = True
        await world.session.close()
        world.begin(carry=0.3)
        await asyncio.sleep(0.1)
        await world.look(3)
        assert sum(world.totals()) == 16
        gone.is_stuck = False

    async def test_an_order_of_one_that_led_before_is_void(self, world):
        await world.look(2)
        first, second, _ = world.proxies
        first.path.waiting, late = 50, first.take_orders_late()
        await world.look()  # the others have given up slots that the first has not heard of
        await world.session.close()
        world.begin()
        await world.comes_late(late, first, second)

    async def test_what_runs_on_a_replica_that_was_away_counts_when_it_is_back(self, world):
        await world.look(2)
        first, second, _ = world.proxies
        first.path.busy, r0 = {"r0": 5}, world.replicas["r0"]
        world.replicas["r0"] = Replica("r0", r0.url, 0)
        await world.look()
        del world.replicas["r0"]
        await world.look()
        assert world.teller.busy_slots() == {"r0": 5}
        second.path.waiting, world.replicas["r0"] = 50, r0
        await world.look(3)
        assert second.shares()["r0"] == 3

    async def test_nobody_is_told_again_of_a_replica_that_is_gone_while_requests_run_there(self, world):
        await world.look(2)
        world.proxies[0].path.busy = {"x": 5}
        await world.look()
        before = [proxy.puts for proxy in world.proxies]
        await world.look(3)
        assert [proxy.puts for proxy in world.proxies] == before

    async def test_one_that_is_found_by_two_names_is_one(self, world):
        world.urls.append(world.urls[0].replace("127.0.0.1", "localhost"))
        await world.session.close()
        world.begin()
        await world.look(2)
        assert sorted(await world.look(2)) == [5, 5, 6]

    async def test_one_that_is_found_by_two_names_is_left_its_slots_once(self, world):
        world.urls.append(world.urls[0].replace("127.0.0.1", "localhost"))
        await world.session.close()
        world.begin()
        world.proxies[0].path.waiting = 50
        await world.look(3)
        before, world.replicas = world.totals(), {}
        world.proxies[1].path.waiting = 50
        assert sum(await world.look(3)) <= sum(before) == 16

    async def test_nothing_is_remembered_of_one_that_is_forgotten(self, world):
        await world.session.close()
        world.begin(carry=0.05)
        await world.look()
        gone = world.proxies.pop(0)
        gone.nonsense = b"?"
        await world.look()
        world.doors._doors.pop(world.urls[0])
        await asyncio.sleep(0.1)
        await world.look()
        assert set(world.teller._trouble) == set(world.urls[1:])

    async def test_a_new_replica_can_be_used_from_the_first_look_on(self, world):
        await world.look(2)
        world.replicas["r2"] = Replica("r2", "http://r2:8000", 9)
        await world.look()
        assert [proxy.shares()["r2"] for proxy in world.proxies] == [3, 3, 3]

    async def test_replicas_that_only_the_controller_has_lost_are_left_to_the_proxies(self, world):
        await world.look(2)
        before, world.replicas = world.totals(), {}
        assert await world.look(2) == before
        for proxy in world.proxies:
            proxy.servers.away = {"http://r0:8000", "http://r1:8000"}
        await asyncio.sleep(0.1)
        assert await world.look(2) == [0, 0, 0]
        assert [proxy.fleet.told for proxy in world.proxies] == [0, 0, 0]
