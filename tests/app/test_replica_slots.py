"""Slots that nobody has set: asked of the server, else learned; what each path is told of it, and when."""

import asyncio
from types import SimpleNamespace

import pytest

from autoscaler.app.replica_slots import ReplicaSlots
from autoscaler.dispatch.learned_slots import SlotOptions
from tests.fakes.platform import InMemoryPlatform
from tests.fakes.replica_listener import FakeReplicaListener


class Servers:
    """Tell `told` slots, once they are let."""

    def __init__(self, told: int | None = None) -> None:
        self.told = told
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ready(self, url: str) -> bool:
        return True

    async def slots(self, url: str) -> int | None:
        self.asked.append(url)
        await self.may_answer.wait()
        return self.told


class Standing:
    """A platform in memory, and what is told of it."""

    def __init__(self, folder, servers, options=None, ready=1):
        self.time = 0.0
        clock = SimpleNamespace(now=lambda: self.time, wall_time=lambda: self.time)
        self.platform = InMemoryPlatform(clock, cold_start=1.0, ready=ready)
        self.drive = SimpleNamespace(slots_learned=None, rows_per_call=0)
        self.listener = FakeReplicaListener()
        self.slots = ReplicaSlots(
            self.platform, servers, self.drive, options or SlotOptions(), folder / "pool" / "slots.json"
        )

    async def start(self):
        await self.slots.start(self.listener)
        return self

    async def per_replica(self) -> int:
        return (await self.slots.fleet()).slots_per_replica

    def offered(self) -> list[tuple[int, int | None]]:
        return [(replica.slots, replica.learns_from) for replica in self.listener.ready.values()]


async def test_what_a_server_tells_is_so(tmp_path):
    standing = await Standing(tmp_path, Servers(told=12), ready=2).start()
    assert standing.offered() == [(12, None), (12, None)]
    assert await standing.per_replica() == 12


async def test_with_an_objective_it_is_learned_how_many_of_them_keep_it(tmp_path):
    standing = await Standing(tmp_path, Servers(told=12), SlotOptions(service_time=0.1)).start()
    assert standing.offered() == [(12, 12)]


async def test_where_a_server_does_not_tell_slots_are_learned_from_one_on(tmp_path):
    standing = await Standing(tmp_path, Servers(), SlotOptions(slots_max=64)).start()
    assert standing.offered() == [(64, 1)]
    assert await standing.per_replica() == 1


async def test_the_control_path_follows_in_steps_that_matter(tmp_path):
    standing = await Standing(tmp_path, Servers()).start()
    seen = []
    for learned in (1, 2, 4, 8, 16, 32, 40, 41, 38, 43, 44, 39):
        standing.drive.slots_learned = learned
        seen.append(await standing.per_replica())
    assert seen == [1, 2, 4, 8, 16, 32, 40, 40, 40, 40, 44, 39]


async def test_where_requests_are_merged_nothing_that_was_learned_before_counts(tmp_path):
    standing = await Standing(tmp_path, Servers(told=2), SlotOptions(service_time=0.1)).start()
    standing.drive.slots_learned, standing.drive.rows_per_call = 1, 32
    assert await standing.per_replica() == 2


async def test_what_was_learned_serves_the_next_run(tmp_path):
    standing = await Standing(tmp_path, Servers()).start()
    standing.drive.slots_learned = 24
    assert await standing.per_replica() == 24
    await standing.slots.stop()
    again = await Standing(tmp_path, Servers()).start()
    assert again.offered() == [(256, 24)]
    assert await again.per_replica() == 24


@pytest.mark.parametrize(("content", "begins"), [(b"many", 1), (b"-3", 1), (b"9000", 256), (b"", 1)])
async def test_a_damaged_file_is_no_reason_to_fail(tmp_path, content, begins):
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "slots.json").write_bytes(content)
    standing = await Standing(tmp_path, Servers()).start()
    assert standing.offered() == [(256, begins)]


async def test_a_replica_is_told_of_once_its_server_has_answered(tmp_path):
    servers = Servers(told=3)
    servers.may_answer.clear()
    standing = Standing(tmp_path, servers)
    starting = asyncio.create_task(standing.start())
    await asyncio.sleep(0)
    assert standing.listener.calls == []
    servers.may_answer.set()
    await starting
    assert standing.listener.calls == [("ready", "r1")]


async def test_one_that_is_lost_meanwhile_is_never_told_of(tmp_path):
    servers = Servers(told=3)
    servers.may_answer.clear()
    standing = Standing(tmp_path, servers)
    starting = asyncio.create_task(standing.start())
    await asyncio.sleep(0)
    standing.platform.lose("r1")
    servers.may_answer.set()
    await starting
    assert standing.listener.calls == []


async def test_taken_back_from_draining_it_is_not_asked_again(tmp_path):
    servers = Servers(told=3)
    standing = await Standing(tmp_path, servers, ready=2).start()
    standing.listener.busy = {"r1": 1, "r2": 1}
    await standing.slots.scale_to(1)
    assert ("draining", "r1") in standing.listener.calls
    await standing.slots.scale_to(2)
    assert sorted(standing.listener.ready) == ["r1", "r2"]
    assert len(servers.asked) == 2


async def test_back_from_loss_it_is_asked_again_for_it_may_be_another_server(tmp_path):
    servers = Servers(told=3)
    standing = await Standing(tmp_path, servers).start()
    replica = standing.listener.ready["r1"]
    standing.slots.replica_lost("r1")
    servers.told = 5
    standing.slots.replica_ready(replica)
    await standing.listener.until(lambda: bool(standing.listener.ready))
    assert standing.offered() == [(5, None)]


async def test_whoever_stops_waits_for_nobody(tmp_path):
    servers = Servers(told=3)
    standing = await Standing(tmp_path, servers).start()
    servers.may_answer.clear()
    standing.time = 5.0
    await standing.slots.scale_to(2)
    standing.time = 7.0
    standing.platform.catch_up()
    await asyncio.sleep(0)
    assert len(servers.asked) == 2
    async with asyncio.timeout(5):
        await standing.slots.stop()


async def test_probes_and_slots_in_use_are_passed_on(tmp_path):
    standing = await Standing(tmp_path, Servers()).start()
    standing.slots.replica_probed("r1", False)
    standing.listener.busy = {"r1": 7}
    assert standing.listener.probes == [("r1", False)]
    assert standing.slots.busy_slots() == {"r1": 7}
