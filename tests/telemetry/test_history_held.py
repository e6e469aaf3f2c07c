"""A history goes on, and loses no new row, whatever is done to its file while the program runs."""

import os
import shutil
import sqlite3

import pytest

from autoscaler.domain import Binding, Fleet, Hold, Observation, Reason
from autoscaler.telemetry import history_held
from autoscaler.telemetry.history import History
from autoscaler.telemetry.history_reader import HistoryReader

FLEET, HOLD = Fleet(1, 0, 0, 1, 5.0, 9.0), Hold(1, Reason.IDLE, Binding.NONE)


class Log:
    """Keeps what was logged as an error."""

    def __init__(self):
        self.errors = []

    def error(self, event, **facts):
        self.errors.append(f"{event}: {facts.get('found') or facts.get('damage')}")


@pytest.fixture
def log(monkeypatch):
    log = Log()
    monkeypatch.setattr(history_held, "_log", log)
    return log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "history.db"


@pytest.fixture
def history(path, log):
    with History(path) as history:
        yield history


def keep(history, *steps):
    for step in steps:
        seen = Observation(10.0, step, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, 10.0 * (step + 1))
        history.record("chat", seen, FLEET, HOLD, 10.0 * step, 10.0 * (step + 1))
    history.flush()


def kept(history):
    return [row.arrivals for row in history.intervals("chat")]


def kept_on_disk(path):
    with HistoryReader(path) as reader:
        return kept(reader)


def set_aside(path):
    return [file for file in path.parent.iterdir() if ".damaged-" in file.name and file.name[-4] != "-"]


def checkpoint(path):
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()


def test_one_that_is_deleted_is_begun_anew(history, path, log):
    keep(history, 1)
    path.unlink()
    keep(history, 2)
    keep(history, 3)
    assert kept(history) == kept_on_disk(path) == [2, 3]
    assert len(log.errors) == 1
    assert "it was deleted" in log.errors[0]
    history.close()
    assert kept_on_disk(path) == [2, 3]


def test_its_whole_folder_is_made_again_with_the_lock(history, path):
    shutil.rmtree(path.parent)
    keep(history, 2)
    assert kept_on_disk(path) == [2]
    with pytest.raises(Exception, match="in use by"):
        History(path)


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_one_that_is_truncated_is_set_aside(history, path, log, length):
    keep(history, 1)
    checkpoint(path)
    os.truncate(path, length)
    keep(history, 2)
    keep(history, 3)
    assert kept(history) == kept_on_disk(path) == [2, 3]
    assert [file.stat().st_size for file in set_aside(path)] == [length]
    assert len(log.errors) == 2
    history.close()
    assert [file.stat().st_size for file in set_aside(path)] == [length]


def test_one_that_is_overwritten_is_set_aside_as_it_is(history, path):
    keep(history, 1)
    checkpoint(path)
    path.write_bytes(b"garbage " * 10_000)
    keep(history, 2)
    assert kept(history) == kept_on_disk(path) == [2]
    history.close()
    assert [file.read_bytes() for file in set_aside(path)] == [b"garbage " * 10_000]
    assert kept_on_disk(path) == [2]


def test_garbage_that_takes_its_place_is_set_aside(history, path, tmp_path):
    keep(history, 1)
    (tmp_path / "garbage").write_bytes(b"garbage " * 10_000)
    (tmp_path / "garbage").rename(path)
    keep(history, 2)
    assert kept_on_disk(path) == [2]
    assert [file.read_bytes() for file in set_aside(path)] == [b"garbage " * 10_000]


def test_one_that_is_restored_from_a_copy_goes_on_from_there(history, path, tmp_path):
    with History(tmp_path / "copy.db") as copy:
        keep(copy, 7)
    keep(history, 1)
    (tmp_path / "copy.db").rename(path)
    keep(history, 8)
    assert kept(history) == kept_on_disk(path) == [7, 8]


def test_without_its_wal_it_keeps_what_was_in_there(history, path):
    keep(history, 1)
    path.with_name("history.db-wal").unlink()
    keep(history, 2)
    assert kept(history) == kept_on_disk(path) == [1, 2]


def test_one_that_another_program_touched_or_folded_goes_on_without_a_word(history, path, log):
    keep(history, 1)
    os.utime(path)
    keep(history, 2)
    checkpoint(path)
    keep(history, 3)
    assert kept(history) == [1, 2, 3]
    assert set_aside(path) == log.errors == []


def test_damage_that_only_a_commit_meets_is_set_aside_too(history, path, log):
    keep(history, *range(1, 200))
    checkpoint(path)
    there = path.stat()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(there.st_size - 4096))
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))  # so that it looks untouched
    with sqlite3.connect(path) as other:  # makes the writer forget the pages that it remembers
        other.execute("PRAGMA user_version = 1")
    other.close()
    keep(history, 300)
    assert kept_on_disk(path) == [300]
    assert len(set_aside(path)) == 1


def test_while_no_file_can_be_made_rows_wait(history, path, monkeypatch):
    monkeypatch.setattr("autoscaler.telemetry.history_writer._RETRY_AFTER", 0.01)
    shutil.rmtree(path.parent)
    path.parent.write_text("a file where the folder was")
    seen = Observation(10.0, 5, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, 10.0)
    history.record("chat", seen, FLEET, HOLD, 0.0, 10.0)
    history.flush(timeout=0.2)
    path.parent.unlink()
    history.flush()
    history.flush()
    assert kept_on_disk(path) == [5]


def test_a_file_where_sqlite_can_make_nothing_beside_it_is_read_as_it_stands(path, history):
    keep(history, 1, 2)
    history.close()
    path.with_name("history.db-shm").mkdir()  # fails as on a read-only mount
    assert kept_on_disk(path) == [1, 2]
