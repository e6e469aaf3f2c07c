"""A pool of a controller: doors, platform and loop, made from settings; nothing runs as a process."""

import asyncio
from functools import partial

import pytest
import yaml

from autoscaler.app.controller_status import watched_status
from autoscaler.app.demand_source import door_finder
from autoscaler.app.kubernetes_doors import KubernetesFinder
from autoscaler.app.seen_replicas import SeenReplicas, ToldSlots, busy_beside
from autoscaler.app.sidecar_settings import sidecar_options
from autoscaler.app.watched_pool import WatchedPool
from autoscaler.clock import SystemClock, VirtualClock
from autoscaler.control_loop import ControlOptions
from autoscaler.domain import Observation
from autoscaler.fit_process import FitProcesses
from autoscaler.leadership import Alone
from autoscaler.ports import Replica
from autoscaler.remote_fleet import Member
from autoscaler.scaling.doors import DoorInterval, DoorReading, Doors, MergeOptions
from autoscaler.settings import load
from autoscaler.sharing.known_proxy import KnownProxy
from autoscaler.sharing.message import SharesHeld
from autoscaler.telemetry.demand.find import Listed, Named, ServiceRecord
from autoscaler.telemetry.demand.options import (
    KubernetesDoors,
    ListedDoors,
    NamedDoors,
    PrometheusDemand,
    ServiceRecordDoors,
)
from autoscaler.telemetry.demand.reader import DoorReader, ReaderOptions
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from tests.fakes.kubernetes_api import FakeCluster
from tests.fakes.platform import InMemoryPlatform

DOOR = "http://10.0.0.5:8082"
DEMAND = {"kind": "list", "urls": [DOOR]}


def pool_settings(tmp_path, **pool):
    file = tmp_path / "f.yaml"
    platform = {"kind": "keda", "urls": ["http://10.0.0.5:8080"]}
    given = {"platform": platform, "demand": DEMAND, **pool}
    file.write_text(yaml.safe_dump({"history": str(tmp_path / "h.db"), "pools": {"chat": given}}))
    return load(file, {})


class NotLeading(Alone):
    is_leader = False
    leader = "another"


@pytest.fixture
def a_pool(tmp_path):
    histories = []

    def make(leadership=None, **pool):
        settings = pool_settings(tmp_path, **pool)
        histories.append(History(settings.history))
        metrics = Metrics(("chat",), lambda: None)
        clock = VirtualClock(wall_time=1e6)
        made = WatchedPool(
            settings.pools["chat"],
            ControlOptions(),
            histories[-1],
            metrics,
            clock,
            FitProcesses(),
            leadership or Alone(),
        )
        made.platform._fleet._listener = made.replicas  # as after start, with nobody to probe
        made.clock = clock
        return made

    yield make
    for history in histories:
        history.close()


async def tick(pool, arrivals: int) -> None:
    """Ten seconds in which so many came to the door."""
    incarnation, sequence = (
        ("one", pool.doors.cursor(DOOR)[1]) if DOOR in pool.doors.addresses else ("one", 0)
    )
    pool.doors.listed([DOOR], pool.clock.now())
    pool.clock.move_to(pool.clock.now() + 10.0)
    now = pool.clock.now()
    seen = Observation(10.0, arrivals, arrivals, arrivals * 2.0, arrivals * 4.0, arrivals / 5, 0, 0, 0.0, 1e6)
    reading = DoorReading(incarnation, (DoorInterval(sequence + 1, now, seen),), slots=4, busy=3)
    pool.doors.answered(DOOR, reading, now)
    await pool.control.tick()


async def test_what_the_doors_tell_is_decided_on_and_the_platform_is_told(a_pool):
    pool = a_pool(slots_per_replica=4)
    for _ in range(4):
        await tick(pool, arrivals=60)  # 12 erlangs: 4 replicas of 4 slots, or more
    assert pool.control.state.observation.arrivals == 60
    assert pool.platform.desired >= 4


async def test_who_waits_for_a_first_replica_is_seen_before_the_door_has_told_it(a_pool):
    pool = a_pool(slots_per_replica=4, demand={**DEMAND, "doors": "proxies"})
    pool.teller._proxies[DOOR] = KnownProxy(0.0, held=SharesHeld(True, waiting=3), is_silent=False)
    await tick(pool, arrivals=0)
    seen = pool.control.state.observation
    assert (seen.queue_depth, seen.in_flight) == (3, 3)


async def test_a_replica_that_the_platform_does_not_list_is_not_left_to_proxies(a_pool):
    pool = a_pool(slots_per_replica=4, demand={**DEMAND, "doors": "proxies"})
    pool.platform._fleet.roster.told([Member("a", "http://127.0.0.1:9")])
    assert (pool._is_listed("a"), pool._is_listed("b")) == (True, False)
    await pool.platform._fleet.roster.stop()


async def test_who_does_not_lead_decides_the_same_and_tells_nobody(a_pool):
    pool = a_pool(NotLeading(), slots_per_replica=4)
    for _ in range(4):
        await tick(pool, arrivals=60)
    assert pool.control.state.decision.desired >= 4
    assert pool.platform.desired is None
    pool.discovered = True
    assert pool.not_ready == "pool chat: another controller answers to KEDA (another)"


async def test_before_the_first_decision_the_status_shows_the_replicas_that_there_are(a_pool):
    pool = a_pool(slots_per_replica=4, scaling={"replicas_min": 2})
    pool.replicas.replica_ready(Replica("a", "http://10.0.0.5:8080", 4))
    told = watched_status(pool, pool.clock.now())
    assert (told.replicas.ready, told.replicas.desired, told.slots.total) == (1, 2, 4)
    assert told.last_decision is None


async def test_without_any_door_the_fleet_is_brought_to_its_least_and_left_there(a_pool):
    pool = a_pool(scaling={"replicas_min": 2})
    pool.clock.move_to(10.0)
    await pool.control.tick()
    assert pool.platform.desired == 2


async def test_slots_that_nobody_set_are_those_that_doors_tell():
    clock = VirtualClock()
    doors = Doors(MergeOptions(), 0.0)
    slots = ToldSlots(InMemoryPlatform(clock, ready=1), doors)
    assert (await slots.fleet()).slots_per_replica == 1
    doors.listed(["a", "b", "c"], 0.0)
    for address, count in (("a", 8), ("b", 0), ("c", 6)):
        doors.answered(address, DoorReading(address, (), slots=count), 1.0)
    assert (await slots.fleet()).slots_per_replica == 6


def test_a_platform_that_acts_later_is_asked_through_its_slots_whether_it_may(a_pool):
    pool = a_pool(lead := NotLeading())
    pool.platform._wish = 3
    assert pool.platform.desired is None
    lead.is_leader = True
    assert pool.platform.desired == 3


def test_the_slots_in_use_of_a_replica_are_those_of_the_door_on_its_host():
    doors = Doors(MergeOptions(), 0.0)
    doors.listed([DOOR, "http://10.0.0.6:8082"], 0.0)
    doors.answered(DOOR, DoorReading("one", (), busy=3), 1.0)
    replicas = SeenReplicas(partial(busy_beside, doors))
    replicas.replica_ready(Replica("a", "http://10.0.0.5:8080", 4))
    replicas.replica_ready(Replica("b", "http://10.0.0.6:8080", 4))
    assert replicas.busy_slots() == {"a": 3}
    replicas.replica_draining("a")
    assert replicas.ready == 1
    replicas.replica_lost("a")
    assert replicas.busy_slots() == {}


async def test_doors_in_a_cluster_are_the_ready_pods_of_a_service(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    async with FakeCluster(3, port=8082) as cluster:
        cluster.run()
        finder = KubernetesFinder(KubernetesDoors("chat", kubeconfig=cluster.kubeconfig(tmp_path)))
        assert await finder.look() is None
        async with asyncio.timeout(5.0):
            while (found := await finder.look()) is None:
                await asyncio.sleep(0.01)
        await finder.close()
    assert len(found) == 3
    assert all(url.endswith(":8082") for url in found)


async def test_a_controller_without_the_rights_to_find_doors_says_which(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    async with FakeCluster(1, port=8082) as cluster:
        cluster.forbidden.add(("GET", "endpointslices"))
        finder = KubernetesFinder(KubernetesDoors("chat", kubeconfig=cluster.kubeconfig(tmp_path)))
        reader = DoorReader("chat", Doors(MergeOptions(), 0.0), finder, ReaderOptions(), SystemClock())
        async with asyncio.timeout(20.0):
            while not reader.troubles:
                await reader.look()
                await asyncio.sleep(0.01)
        await finder.close()
    assert "bind the Role" in reader.troubles["where doors are"]


@pytest.mark.parametrize(
    "place, kind",
    [
        (ListedDoors((DOOR,)), Listed),
        (NamedDoors(DOOR), Named),
        (ServiceRecordDoors("_a._tcp.b"), ServiceRecord),
        (KubernetesDoors("chat"), KubernetesFinder),
    ],
)
async def test_every_place_has_its_finder(place, kind):
    finder = door_finder(place)
    assert isinstance(finder, kind)
    await finder.close()


def test_every_key_of_the_demand_arrives(tmp_path):
    given = {
        "kind": "prometheus",
        "url": "http://p:9090",
        "window": "2m",
        "carry": "1m",
        "selector": 'job="x"',
    }
    demand = pool_settings(tmp_path, demand=given).pools["chat"].demand
    assert demand.place == PrometheusDemand("http://p:9090", 120.0, 'job="x"')
    assert demand.merge == MergeOptions(60.0, 300.0)


def test_a_sidecar_serves_static_servers_only(tmp_path):
    with pytest.raises(ValueError, match="servers that run already"):
        sidecar_options(pool_settings(tmp_path))


async def test_the_status_says_which_sidecar_does_not_answer_and_why(a_pool):
    pool = a_pool(demand={"kind": "list", "urls": ["http://127.0.0.1:1"]})
    async with pool.source.session() as session:
        await pool.source.look()
        await pool.source.read(session)
    (told,) = watched_status(pool, pool.clock.now()).troubles
    assert (told.where, told.text) == ("http://127.0.0.1:1", "127.0.0.1:1: connection refused")
    (told,) = watched_status(pool, pool.clock.now() - 0.001).troubles  # looked at after the time was read
    assert told.age == 0.0
