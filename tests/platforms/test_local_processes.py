"""The platform `local` with real processes: starts, failures, drains, and ends."""

import asyncio
import os
import re
import urllib.request

import pytest

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.local_process import replica_log
from autoscaler.platforms.local_process.processes import is_alive
from tests.fakes.local_replicas import process_of


async def until(condition, timeout=30.0):
    """Wait for what no listener is told."""
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.01)


def states(platform):
    return [view.state for view in platform.replicas()]


async def test_a_replica_serves_on_its_own_port_once_it_is_reported(local):
    platform, listener = await local.start(
        env={"GPU": "{gpu}"}, gpus=("A", "B"), slots_per_replica=3, cold_start_initial=500.0
    )
    await platform.scale_to(2)
    fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting, fleet.cold_start_mean) == (0, 2, 500.0)
    await listener.until(lambda: len(listener.ready) == 2)

    fleet, views = await platform.fleet(), platform.replicas()
    assert (fleet.ready, fleet.starting, fleet.slots_per_replica) == (2, 0, 3)
    assert 0 < fleet.cold_start_mean <= fleet.cold_start_p90 < 60
    assert [view.gpu for view in views] == ["A", "B"]
    assert [process_of(platform, index).environ()["GPU"] for index in (0, 1)] == ["A", "B"]
    for view in views:
        assert os.getsid(view.pid) == view.pid  # Ctrl-C at our terminal does not reach it
        with await asyncio.to_thread(urllib.request.urlopen, view.url, timeout=10) as answer:
            assert answer.read() == b"ok"


async def test_the_same_wish_again_starts_nothing_and_room_is_bounded(local):
    platform, listener = await local.start(env={"GPU": "{gpu}"}, gpus=("A",))
    for _ in range(3):
        await platform.scale_to(2)
    assert states(platform) == ["starting"]
    await listener.until(lambda: len(listener.ready) == 1)
    assert "room for 1; list more gpus, or lower replicas_max" in platform.last_error
    await platform.scale_to(1)
    assert platform.last_error is None


async def test_a_ready_replica_that_dies_is_lost_and_replaced_by_another(local):
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    (first,) = listener.ready
    process_of(platform).kill()
    await listener.until(lambda: not listener.ready)
    assert "was killed by SIGKILL, after" in platform.last_error
    await listener.until(lambda: listener.ready)
    assert platform.last_error is None
    (second,) = listener.ready
    assert listener.calls == [("ready", first), ("lost", first), ("ready", second)]
    assert platform.replicas()[0].restarts == 1


async def test_one_that_exits_at_once_is_tried_again_and_told_with_its_last_words(local):
    platform, _ = await local.start("--exit", "3")
    await platform.scale_to(1)
    await until(lambda: platform.replicas()[0].restarts >= 2)
    await until(lambda: platform.last_error)
    assert re.fullmatch(
        r"replica-0-\w+ exited with code 3, before it was ready; "
        r"last lines of .*/replica-0\.log: out of memory on device 0",
        platform.last_error,
    )
    fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting) == (0, 1)


async def test_a_command_that_does_not_exist_is_told_and_does_not_stop_the_program(local):
    platform, _ = await local.start(command=("no-such-server", "{port}"))
    await platform.scale_to(1)
    await until(lambda: platform.last_error)
    assert "no-such-server cannot be started" in platform.last_error
    assert (await platform.fleet()).starting == 1


async def test_one_that_never_gets_ready_is_ended_and_tried_again(local):
    platform, listener = await local.start("--never-ready", ready_timeout=0.3)
    await platform.scale_to(1)
    await until(lambda: platform.replicas()[0].restarts >= 1)
    assert "did not answer its readiness probe within 0.3 s" in platform.last_error
    assert listener.calls == []


async def test_what_one_prints_is_bounded_before_it_is_ready_and_while_it_ends(local, monkeypatch):
    monkeypatch.setattr(replica_log, "LOOK_INTERVAL", 0.05)
    prints = ("sh", "-c", "trap '' TERM; : {port}; while :; do echo 0123456789; sleep 0.001; done")
    platform, _ = await local.start(command=prints, log_bytes_max=50, stop_grace=0.5)
    logs = local.state_dir / "logs"
    aside, fresh = logs / "replica-0.log.1", logs / "replica-0.log"
    await platform.scale_to(1)
    await until(aside.exists)
    assert states(platform) == ["starting"]
    await platform.scale_to(0)
    await until(lambda: states(platform) == ["stopping"])
    aside.unlink()
    await until(aside.exists)
    assert states(platform) == ["stopping"]
    await until(lambda: not platform.replicas())
    assert aside.stat().st_size <= 50
    assert fresh.stat().st_size <= 50


async def test_one_that_hangs_is_lost_ended_and_replaced(local, tmp_path):
    hang = tmp_path / "hang"
    platform, listener = await local.start(
        "--hang-file", str(hang), "--ignore-term", probe_timeout=0.3, stop_grace=0.1
    )
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    hung = process_of(platform)
    hang.touch()
    await listener.until(lambda: not listener.ready)
    assert "answers no probe any more" in platform.last_error
    hang.unlink()
    await listener.until(lambda: listener.ready)
    assert not is_alive(hung)


async def test_one_that_is_busy_is_not_ended_for_its_silence(local, tmp_path):
    hang = tmp_path / "hang"
    platform, listener = await local.start("--hang-file", str(hang), probe_timeout=0.1)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    listener.busy = dict.fromkeys(listener.ready, 1)
    hang.touch()
    await asyncio.sleep(0.6)  # several times what ends an idle one
    assert states(platform) == ["ready"]


async def test_a_busy_replica_finishes_before_it_ends(local):
    platform, listener = await local.start()
    await platform.scale_to(2)
    await listener.until(lambda: len(listener.ready) == 2)
    listener.busy = dict.fromkeys(listener.ready, 1)
    await platform.scale_to(1)
    (leaving,) = listener.draining
    assert (await platform.fleet()).draining == 1
    await asyncio.sleep(0.3)
    assert leaving in listener.draining
    listener.busy = {}
    await until(lambda: len(platform.replicas()) == 1)
    assert listener.calls[2:] == [("draining", leaving), ("lost", leaving)]
    assert [view.id for view in platform.replicas()] == list(listener.ready)


async def test_a_drain_has_an_end(local):
    platform, listener = await local.start(drain_max=0.2)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    listener.busy = dict.fromkeys(listener.ready, 1)
    await platform.scale_to(0)
    await until(lambda: not platform.replicas())
    assert [verb for verb, _ in listener.calls] == ["ready", "draining", "lost"]


async def test_a_draining_replica_is_taken_back_rather_than_another_started(local):
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    before, (replica,) = platform.replicas(), listener.ready
    listener.busy = {replica: 1}
    await platform.scale_to(0)
    await platform.scale_to(1)
    assert [verb for verb, _ in listener.calls] == ["ready", "draining", "ready"]
    listener.busy = {}
    await asyncio.sleep(0.3)  # were the drain still on, it would end now
    assert platform.replicas() == before


async def test_a_draining_replica_that_dies_is_not_replaced(local):
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    listener.busy = dict.fromkeys(listener.ready, 1)
    await platform.scale_to(0)
    process_of(platform).kill()
    await until(lambda: not platform.replicas())
    assert [verb for verb, _ in listener.calls] == ["ready", "draining", "lost"]


async def test_idle_and_starting_replicas_go_before_busy_ones(local):
    platform, listener = await local.start()
    await platform.scale_to(2)
    await listener.until(lambda: len(listener.ready) == 2)
    busy, _ = listener.ready
    listener.busy = {busy: 1}
    await platform.scale_to(3)
    await platform.scale_to(1)
    await until(lambda: len(platform.replicas()) == 1)
    assert list(listener.ready) == [busy]


async def test_what_a_replica_forked_ends_with_it(local):
    platform, listener = await local.start("--child", stop_grace=0.1)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    leader = process_of(platform)
    (child,) = leader.children()
    leader.kill()
    await listener.until(lambda: len(listener.calls) == 3)  # ready, lost, ready
    assert not is_alive(child)


async def test_a_replica_is_asked_to_end_before_it_is_killed(local):
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    await platform.scale_to(0)
    await until(lambda: not platform.replicas())
    assert (local.state_dir / "logs" / "replica-0.log").read_text() == "goodbye\n"


async def test_a_wish_that_had_to_wait_for_room_comes_true_by_itself(local):
    platform, listener = await local.start("--ignore-term", gpus=("A",), env={"GPU": "{gpu}"}, stop_grace=0.3)
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    await platform.scale_to(0)
    await until(lambda: states(platform) == ["stopping"])
    await platform.scale_to(1)
    fleet = await platform.fleet()
    assert (fleet.starting, fleet.draining) == (0, 1)
    await listener.until(lambda: listener.ready)
    assert [verb for verb, _ in listener.calls] == ["ready", "draining", "lost", "ready"]


async def test_stop_ends_all_whatever_they_do(local):
    platform, listener = await local.start("--ignore-term", "--child", stop_grace=0.1)
    await platform.scale_to(2)
    await listener.until(lambda: len(listener.ready) == 2)
    leaders = [process_of(platform, index) for index in (0, 1)]
    family = leaders + [child for leader in leaders for child in leader.children()]
    assert len(family) == 4
    await platform.scale_to(4)
    await platform.stop()
    assert platform.replicas() == []
    assert listener.ready == {}
    assert not any(map(is_alive, family))
    with pytest.raises(PlatformUnavailable):
        await platform.scale_to(1)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 20])
async def test_stop_during_a_start_leaves_nothing(local, turns):
    platform, listener = await local.start("--delay", "30")
    await platform.scale_to(3)
    for _ in range(turns):
        await asyncio.sleep(0)
    await platform.stop()
    assert platform.replicas() == []
    assert listener.calls == []
    assert list((local.state_dir / "replicas").iterdir()) == []


async def test_a_cancelled_program_ends_its_replicas_too(local):
    """As when `asyncio.run` ends by an exception and cancels every task."""
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    process = process_of(platform)
    (life,) = (task for task in asyncio.all_tasks() if task.get_name() == "replica in place 0")
    life.cancel()
    await asyncio.wait([life])
    assert not is_alive(process)


async def test_measured_starts_are_known_to_the_next_run(local):
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    await platform.stop()
    successor, _ = await local.start()
    assert (await successor.fleet()).cold_start_mean == (await platform.fleet()).cold_start_mean != 60.0
