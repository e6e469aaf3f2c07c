"""The fake platform keeps the promises of the port, so that what is tested against it holds elsewhere."""

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.errors import PlatformUnavailable
from tests.fakes.platform import InMemoryPlatform
from tests.fakes.replica_listener import FakeReplicaListener


async def counts(platform):
    fleet = await platform.fleet()
    return fleet.ready, fleet.starting, fleet.draining


async def test_ordered_replicas_are_ready_one_cold_start_later():
    clock, listener = VirtualClock(), FakeReplicaListener()
    platform = InMemoryPlatform(clock, cold_start=30.0, ready=1)
    await platform.start(listener)
    await platform.scale_to(3)
    assert await counts(platform) == (1, 2, 0)
    clock.move_to(29.9)
    assert await counts(platform) == (1, 2, 0)
    clock.move_to(30.0)
    assert await counts(platform) == (3, 0, 0)
    assert listener.calls == [("ready", "r1"), ("ready", "r2"), ("ready", "r3")]


async def test_a_busy_replica_drains_and_comes_back_when_it_is_wanted_again():
    clock, listener = VirtualClock(), FakeReplicaListener()
    platform = InMemoryPlatform(clock, ready=2)
    await platform.start(listener)
    listener.busy = {"r1": 1, "r2": 1}
    await platform.scale_to(1)
    assert await counts(platform) == (1, 0, 1)
    await platform.scale_to(2)
    assert await counts(platform) == (2, 0, 0)
    await platform.scale_to(1)
    listener.busy = {}
    assert await counts(platform) == (1, 0, 0)


async def test_starting_replicas_go_first_and_room_is_bounded():
    platform = InMemoryPlatform(VirtualClock(), ready=1, room=3)
    await platform.start(FakeReplicaListener())
    await platform.scale_to(9)
    assert await counts(platform) == (1, 2, 0)
    await platform.scale_to(1)
    assert await counts(platform) == (1, 0, 0)
    assert platform.asked == [9, 1]


async def test_it_refuses_when_told_to():
    platform = InMemoryPlatform(VirtualClock())
    platform.is_unavailable = True
    with pytest.raises(PlatformUnavailable):
        await platform.fleet()
    with pytest.raises(PlatformUnavailable):
        await platform.scale_to(1)
