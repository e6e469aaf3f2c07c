"""Who leads on one machine: the process that holds a lock."""

import asyncio
import contextlib
import errno
import os
import subprocess
import sys

import pytest

from autoscaler.leadership import Alone, FileLeadership, file_lock


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(file_lock, "_LOOK_INTERVAL", 0.01)


@pytest.fixture
async def start(tmp_path):
    tasks = []

    def started(path=tmp_path / "state" / "leader.lock"):
        leadership = FileLeadership(path)
        tasks.append(asyncio.create_task(leadership.run()))
        leadership.task = tasks[-1]
        return leadership

    yield started
    for task in tasks:
        await end(task)


async def end(task):
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def test_the_first_leads_and_the_second_takes_over_when_it_ends(start, tmp_path):
    first = start()
    await until(lambda: first.is_leader)
    second = start()
    await asyncio.sleep(0.05)
    assert not second.is_leader
    assert second.leader == f"process {os.getpid()}"
    await end(first.task)
    assert not first.is_leader
    await until(lambda: second.is_leader)


async def test_a_killed_process_leaves_nothing_that_bars_the_way(start, tmp_path):
    path = tmp_path / "leader.lock"
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    second = start(path)
    await asyncio.sleep(0.05)
    assert not second.is_leader
    holder.kill()
    holder.wait()
    await until(lambda: second.is_leader)


async def test_whose_file_was_deleted_leads_no_more_at_that_moment(start, tmp_path):
    path = tmp_path / "leader.lock"
    first = start(path)
    await until(lambda: first.is_leader)
    path.unlink()
    assert not first.is_leader
    await until(lambda: first.is_leader)  # of a new file
    assert path.read_text() == f"{os.getpid()}\n"


async def test_a_folder_that_cannot_be_written_is_told_and_tried_again(start, tmp_path, capsys):
    blocked = tmp_path / "state"
    blocked.write_text("a file, no folder")
    first = start(blocked / "leader.lock")
    await asyncio.sleep(0.05)
    assert not first.is_leader
    told = capsys.readouterr()
    assert (told.out + told.err).count("make its folder writable") == 1
    blocked.unlink()
    await until(lambda: first.is_leader)


async def test_a_file_system_without_locks_is_told_as_such(start, tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)
    first = start()
    await asyncio.sleep(0.05)
    assert not first.is_leader
    told = "".join(capsys.readouterr())
    assert told.count("cannot be locked (No locks available); put it on a disk of this machine") == 1


async def test_a_full_disk_keeps_nobody_from_leading(start, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(file_lock.os, "pwrite", refuse)
    first = start()
    await until(lambda: first.is_leader)


async def test_who_is_alone_leads():
    assert Alone().is_leader
    task = asyncio.create_task(Alone().run())
    await asyncio.sleep(0)
    assert not task.done()
    await end(task)
