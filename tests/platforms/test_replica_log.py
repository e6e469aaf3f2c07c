"""The bounded log of one place."""

import asyncio
import os

from autoscaler.platforms.local_process import replica_log
from autoscaler.platforms.local_process.replica_log import ReplicaLog


def write(descriptor, text):
    os.write(descriptor, text.encode())


def test_a_fresh_log_sets_the_former_aside(tmp_path):
    log = ReplicaLog(tmp_path / "logs", place=3, bytes_max=1000)
    for text in ("first", "second", "third"):
        descriptor = log.open_fresh()
        write(descriptor, text)
        os.close(descriptor)
    assert log.last_lines() == ["third"]
    assert sorted(path.read_text() for path in (tmp_path / "logs").iterdir()) == ["second", "third"]


def test_a_log_that_is_too_long_is_cut_and_its_writer_goes_on(tmp_path):
    log = ReplicaLog(tmp_path, place=0, bytes_max=10)
    descriptor = log.open_fresh()
    write(descriptor, "0123456789")
    log.cut_if_long()
    assert log.path.stat().st_size == 10
    write(descriptor, "!\n")
    log.cut_if_long()
    write(descriptor, "after\n")
    os.close(descriptor)
    assert log.path.read_text() == "after\n"
    assert (tmp_path / "replica-0.log.1").read_text() == "23456789!\n"


def test_what_is_set_aside_is_no_longer_than_a_log_may_be(tmp_path):
    log = ReplicaLog(tmp_path, place=0, bytes_max=3 * 2**20)
    log.path.write_bytes(bytes(5 * 2**20) + b"x" * 2**20)
    log.cut_if_long()
    aside = (tmp_path / "replica-0.log.1").read_bytes()
    assert (len(aside), aside.count(b"x"), aside[-(2**20) :]) == (3 * 2**20, 2**20, b"x" * 2**20)


def test_a_long_log_of_an_earlier_run_is_set_aside_by_its_end(tmp_path):
    log = ReplicaLog(tmp_path, place=0, bytes_max=10)
    log.path.write_text("0123456789!\n")
    os.close(log.open_fresh())
    assert log.path.read_text() == ""
    assert (tmp_path / "replica-0.log.1").read_text() == "23456789!\n"


async def test_while_it_may_grow_it_is_looked_at_and_once_more_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(replica_log, "LOOK_INTERVAL", 0.01)
    log = ReplicaLog(tmp_path, place=0, bytes_max=10)
    async with log.kept_short():
        log.path.write_text("too long for it")
        async with asyncio.timeout(10):
            while log.path.stat().st_size:
                await asyncio.sleep(0.01)
        monkeypatch.setattr(replica_log, "LOOK_INTERVAL", 600.0)
        await asyncio.sleep(0.05)
        log.path.write_text("once more too long")
    assert log.path.read_text() == ""


def test_the_last_lines_are_few_and_need_no_file(tmp_path):
    log = ReplicaLog(tmp_path, place=0, bytes_max=10**6)
    assert log.last_lines() == []
    log.cut_if_long()
    log.path.write_bytes(b"".join(b"line %d \xff\n" % number for number in range(5000)))
    assert log.last_lines() == [f"line {number} \ufffd" for number in range(4990, 5000)]
