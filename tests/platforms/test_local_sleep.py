"""Replicas that sleep instead of ending, with real processes that sleep and wake as vLLM does."""

import asyncio
import json

import psutil
import pytest

from tests.fakes.local_replicas import process_of


async def until(condition, timeout=30.0):
    """Wait for what no listener is told."""
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.01)


def states(platform):
    return [view.state for view in platform.replicas()]


def asked(local):
    """Return what the servers were asked to do, by their logs."""
    logs = sorted((local.state_dir / "logs").glob("*.log"))
    return [line for log in logs for line in log.read_text().splitlines() if line.startswith("/")]


async def asleep(local, *flags, replicas=1, **options):
    """Return a platform with one ready replica less than `replicas`, and one asleep."""
    platform, listener = await local.start("--sleeps", *flags, **{"sleepers_max": 1, **options})
    await platform.scale_to(replicas)
    await listener.until(lambda: len(listener.ready) == replicas)
    await platform.scale_to(replicas - 1)
    await until(lambda: "asleep" in states(platform) and "/sleep?level=1" in asked(local))
    return platform, listener


async def test_a_replica_that_is_not_needed_sleeps_and_is_woken_when_it_is(local):
    platform, listener = await asleep(local, "--delay", "0.5")
    fleet, process, (name,) = await platform.fleet(), process_of(platform), {id for _, id in listener.calls}
    assert (fleet.ready, fleet.starting, fleet.draining, fleet.asleep) == (0, 0, 0, 1)
    assert listener.calls == [("ready", name), ("draining", name), ("lost", name)]
    await platform.scale_to(1)
    assert states(platform) == ["starting"]
    await listener.until(lambda: listener.ready)
    assert list(listener.ready) == [name]
    assert process_of(platform) == process
    assert process.is_running()
    assert asked(local) == ["/sleep?level=1", "/wake_up"]


async def test_the_time_to_wake_is_measured_apart_and_is_the_lead_time_while_one_sleeps(local):
    platform, listener = await asleep(local, "--delay", "1.0")
    cold = (await platform.fleet()).cold_start_mean
    assert cold > 1.0  # nothing is known of waking yet
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    assert (await platform.fleet()).cold_start_mean == cold  # nobody sleeps: the next one must be started
    await platform.scale_to(0)
    await until(lambda: states(platform) == ["asleep"])
    fleet = await platform.fleet()
    assert fleet.cold_start_mean <= fleet.cold_start_p90 < cold
    kept = {
        file: json.loads((local.state_dir / file).read_text()) for file in ("wakes.json", "cold_starts.json")
    }
    assert [len(measured) for measured in kept.values()] == [1, 1]
    assert kept["wakes.json"] == [fleet.cold_start_mean]


async def test_no_more_sleep_than_may_and_the_others_end(local):
    platform, listener = await local.start("--sleeps", sleepers_max=1)
    await platform.scale_to(3)
    await listener.until(lambda: len(listener.ready) == 3)
    await platform.scale_to(1)
    await until(lambda: sorted(states(platform)) == ["asleep", "ready"])


async def test_by_default_nobody_sleeps(local):
    platform, listener = await local.start("--sleeps")
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    await platform.scale_to(0)
    await until(lambda: not states(platform))
    assert asked(local) == []


@pytest.mark.parametrize("flag", ["--no-sleep", "--no-wake"])
async def test_one_that_refuses_ends_and_another_starts_when_one_is_needed(local, flag):
    platform, listener = await local.start("--sleeps", flag, sleepers_max=1)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    (first,) = listener.ready
    await platform.scale_to(0)
    await until(lambda: states(platform) == ([] if flag == "--no-sleep" else ["asleep"]))
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    assert first not in listener.ready


async def test_one_that_is_wanted_while_it_falls_asleep_is_woken_after_it(local):
    platform, listener = await local.start("--sleeps", sleepers_max=1)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    await platform.scale_to(0)
    await listener.until(lambda: listener.calls[-1][0] == "lost")  # it is told before the server is asked
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    assert asked(local) == ["/sleep?level=1", "/wake_up"]


async def test_a_busy_one_does_not_sleep_before_it_is_idle(local):
    platform, listener = await local.start("--sleeps", sleepers_max=1)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    (name,) = listener.ready
    listener.busy[name] = 1
    await platform.scale_to(0)
    await asyncio.sleep(0.3)
    assert states(platform) == ["draining"]
    assert asked(local) == []
    listener.busy.clear()
    await until(lambda: states(platform) == ["asleep"])


async def test_one_that_dies_asleep_is_no_failure_of_the_fleet(local):
    platform, listener = await asleep(local)
    process_of(platform).kill()
    await until(lambda: not states(platform))
    assert platform.last_error is None
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)


async def test_in_the_place_of_one_that_dies_while_it_wakes_another_starts(local):
    platform, listener = await asleep(local, "--wake-delay", "30")
    await platform.scale_to(1)
    await until(lambda: states(platform) == ["starting"])
    (first,) = {name for _, name in listener.calls}
    process_of(platform).kill()
    await listener.until(lambda: listener.ready)
    assert first not in listener.ready


async def test_the_end_of_the_program_ends_those_that_sleep(local):
    platform, _ = await asleep(local, replicas=2)
    processes = [process_of(platform, index) for index in (0, 1)]
    await platform.stop()
    assert not any(psutil.pid_exists(process.pid) and process.status() != "zombie" for process in processes)


async def killed(platform):
    """End the program as SIGKILL does: its tasks are no more, its processes run on."""
    platform._around = None
    lives = [supervisor.life for supervisor in platform._places.values()]
    for supervisor in platform._places.values():
        supervisor.process.end = _stays
        for task in (supervisor.life, supervisor._aside):
            if task is not None:
                task.cancel()
    await asyncio.gather(*lives, return_exceptions=True)
    platform._records.close()


async def _stays(grace):
    return True


@pytest.mark.parametrize("sleepers_max", [1, 0])
async def test_the_next_program_finds_who_sleeps_and_does_not_send_to_it(local, sleepers_max):
    platform, _ = await asleep(local, replicas=2)
    await killed(platform)
    heir, listener = await local.start("--sleeps", sleepers_max=sleepers_max)
    assert len(listener.ready) == 1
    if sleepers_max:
        assert sorted(states(heir)) == ["asleep", "ready"]
        await heir.scale_to(2)
        await listener.until(lambda: len(listener.ready) == 2)
        assert asked(local).count("/wake_up") == 1
    else:
        await until(lambda: states(heir) == ["ready"])
