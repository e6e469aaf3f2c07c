"""What a killed program left behind is adopted or ended by the next start, and nobody else is touched."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from autoscaler.errors import UsageError
from autoscaler.platforms.local_process import processes
from autoscaler.platforms.local_process.records import Records, ReplicaRecord
from load.free_port import free_port
from tests.fakes.local_replicas import process_of, tiny_command
from tests.fakes.replica_listener import FakeReplicaListener

PROGRAM = """
import asyncio, sys
from pathlib import Path
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.platforms.local_process import LocalOptions, LocalProcesses
from tests.fakes.replica_listener import FakeReplicaListener

async def main():
    listener = FakeReplicaListener()
    options = LocalOptions(command=tuple(sys.argv[2:]), state_dir=Path(sys.argv[1]))
    platform = LocalProcesses(options, PlainHttp())
    await platform.start(listener)
    await platform.scale_to(2)
    await listener.until(lambda: len(listener.ready) == 2)
    print("both are ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


class Predecessor:
    """Leaves replicas behind as a program does that was killed at a bad moment."""

    def __init__(self, state_dir, fingerprint):
        self.records = Records(state_dir)
        self.records.open()
        self.records.close()
        self._fingerprint = fingerprint
        self._children = []

    def leaves(self, *flags, is_tagged=True, is_recorded=True, **changes):
        """Start a replica; return its first process and its record."""
        place = len(self._children)
        record = ReplicaRecord(f"replica-{place}-old", place, "", free_port(), self._fingerprint, time.time())
        tag = {processes.TAG: processes.tag_of(self.records.owner, record.id)} if is_tagged else {}
        words = [word.replace("{port}", str(record.port)) for word in tiny_command(*flags)]
        child = subprocess.Popen(words, env={**os.environ, **tag}, start_new_session=True)
        self._children.append(child)
        process = psutil.Process(child.pid)
        pid_started = processes.started_since_boot(process)
        record = replace(record, **{"pid": child.pid, "pid_started": pid_started, "ready_at": 1.0, **changes})
        if is_recorded:
            self.records.write(record)
        return process, record

    def close(self):
        for child in self._children:
            child.kill()
            child.wait()


@pytest.fixture
def predecessor(local):
    predecessor = Predecessor(local.state_dir, local.options().fingerprint)
    yield predecessor
    predecessor.close()


def listens(record):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", record.port)) == 0


async def until(condition, timeout=30.0):
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.01)


async def test_after_sigkill_of_the_program_the_next_one_serves_with_the_same_replicas(local):
    words = [sys.executable, "-c", PROGRAM, str(local.state_dir), *tiny_command()]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        while "both are ready" not in (line := await asyncio.to_thread(program.stdout.readline)):
            assert line, "the program ended by itself"
    finally:
        program.send_signal(signal.SIGKILL)
        program.communicate()
    left = processes.tagged_replicas(Records(local.state_dir).owner)
    assert len(left) == 2

    platform, listener = await local.start()
    fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting) == (2, 0)
    assert set(listener.ready) == set(left)
    assert "desired=2" in repr(platform)
    assert {view.pid for view in platform.replicas()} == {family[0].pid for family in left.values()}

    await platform.scale_to(2)
    assert {view.pid for view in platform.replicas()} == {family[0].pid for family in left.values()}
    first = platform.replicas()[0].id
    process_of(platform).kill()
    await listener.until(lambda: first not in listener.ready and len(listener.ready) == 2)


async def test_a_replica_of_another_command_is_ended(local, predecessor):
    process, _ = predecessor.leaves(fingerprint="other")
    platform, listener = await local.start()
    assert not processes.is_alive(process)
    assert (platform.replicas(), listener.calls, predecessor.records.all()) == ([], [], [])


async def test_one_killed_between_fork_and_record_is_found_by_its_tag(local, predecessor):
    process, _ = predecessor.leaves(is_recorded=False)
    half, _ = predecessor.leaves(pid=None, pid_started=None)
    await local.start()
    assert not processes.is_alive(process)
    assert not processes.is_alive(half)
    assert predecessor.records.all() == []


async def test_the_children_of_a_dead_leader_are_found_by_their_tag(local, predecessor):
    leader, record = predecessor.leaves("--child")
    await until(lambda: listens(record))
    (child,) = leader.children()
    leader.kill()
    await until(lambda: not processes.is_alive(leader))
    await local.start(stop_grace=0.1)
    assert not processes.is_alive(child)


async def test_one_that_overwrote_its_environment_is_known_by_number_and_start(local, predecessor):
    process, record = predecessor.leaves("--child", is_tagged=False)
    await until(lambda: listens(record))
    (child,) = process.children()
    platform, listener = await local.start(stop_grace=0.1)
    assert list(listener.ready) == [record.id]
    await platform.stop()
    assert not processes.is_alive(process)
    assert not processes.is_alive(child)


async def test_a_stranger_who_got_the_number_of_a_dead_replica_is_not_touched(local, predecessor):
    stranger, record = predecessor.leaves(is_tagged=False)
    predecessor.records.write(replace(record, pid_started=record.pid_started - 100.0))
    platform, listener = await local.start()
    assert processes.is_alive(stranger)
    assert (platform.replicas(), listener.calls, predecessor.records.all()) == ([], [], [])


async def test_one_that_was_still_starting_goes_on_and_is_not_counted_as_a_quick_start(local, predecessor):
    process, record = predecessor.leaves("--delay", "0.4", ready_at=None)
    platform, listener = await local.start()
    fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting) == (0, 1)
    await listener.until(lambda: record.id in listener.ready)
    assert platform.replicas()[0].pid == process.pid
    assert (await platform.fleet()).cold_start_mean == 60.0


async def test_one_that_was_ready_and_answers_no_more_is_replaced(local, predecessor, tmp_path):
    hang = tmp_path / "hang"
    hang.touch()
    flags = ("--hang-file", str(hang))
    process, record = predecessor.leaves(*flags, fingerprint=local.options(*flags).fingerprint)
    await until(lambda: listens(record))
    platform, listener = await local.start(*flags, probe_timeout=0.1)
    assert [view.pid for view in platform.replicas()] == [process.pid]
    await until(lambda: not processes.is_alive(process))
    hang.unlink()
    await listener.until(lambda: listener.ready)
    assert record.id not in listener.ready


async def test_a_place_that_is_there_no_more_is_emptied(local, predecessor):
    kept, record = predecessor.leaves(gpu="A")
    other_gpu, _ = predecessor.leaves(gpu="A")
    no_place, _ = predecessor.leaves(gpu="A")
    gpus = {"gpus": ("A", "B"), "env": {"GPU": "{gpu}"}}
    for old in predecessor.records.all():
        predecessor.records.write(replace(old, fingerprint=local.options(**gpus).fingerprint))
    await until(lambda: listens(record))
    _, listener = await local.start(**gpus)
    assert list(listener.ready) == [record.id]
    assert [processes.is_alive(each) for each in (kept, other_gpu, no_place)] == [True, False, False]


@pytest.mark.parametrize("turns", [0, 1, 2, 4])
async def test_stop_in_the_midst_of_adopting_ends_what_was_adopted(local, predecessor, turns):
    process, _ = predecessor.leaves("--delay", "30", ready_at=None)
    platform = local.make()
    starting = asyncio.create_task(platform.start(FakeReplicaListener()))
    while not platform.replicas():
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    await platform.stop()
    await starting
    assert not processes.is_alive(process)


async def test_a_second_instance_is_refused_and_disturbs_nothing(local):
    platform, listener = await local.start()
    await platform.scale_to(1)
    await listener.until(lambda: listener.ready)
    with pytest.raises(UsageError, match="in use by another instance"):
        await local.start()
    assert processes.is_alive(process_of(platform))
