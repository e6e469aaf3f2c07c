"""The bounded log of one place."""

import os

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
    assert (tmp_path / "replica-0.log.1").read_text() == "0123456789!\n"


def test_the_last_lines_are_few_and_need_no_file(tmp_path):
    log = ReplicaLog(tmp_path, place=0, bytes_max=10**6)
    assert log.last_lines() == []
    log.cut_if_long()
    log.path.write_bytes(b"".join(b"line %d \xff\n" % number for number in range(5000)))
    assert log.last_lines() == [f"line {number} \ufffd" for number in range(4990, 5000)]
