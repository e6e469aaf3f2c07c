"""The history keeps what it was given: across restarts, kills, a second instance and foreign files."""

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from autoscaler.domain import Binding, Fleet, Hold, Observation, Reason, ScaleTo
from autoscaler.errors import HistoryLocked, UsageError
from autoscaler.telemetry.history import History
from autoscaler.telemetry.history_reader import HistoryReader

FLEET = Fleet(ready=4, starting=1, draining=0, slots_per_replica=2, cold_start_mean=20.0, cold_start_p90=30.0)
HOLD = Hold(5, Reason.WITHIN_BAND, Binding.BAND)
UP = ScaleTo(6, 5, Reason.DEMAND_RISES, Binding.WAIT)


def seen(wall_time, arrivals=7, interval=10.0):
    return Observation(
        interval=interval,
        arrivals=arrivals,
        completions=6,
        service_time_sum=3.0,
        service_time_square_sum=2.0,
        busy_slots_mean=4.5,
        in_flight=5,
        queue_depth=1,
        oldest_wait=0.25,
        wall_time=wall_time,
        rejected=1,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "history.sqlite"


@pytest.fixture
def history(path):
    with History(path) as history:
        yield history


def test_what_was_recorded_is_read_back_also_after_a_restart(path):
    with History(path) as history:
        history.record("chat", seen(1010.0), FLEET, HOLD, 1.0, 1010.0)
        history.record("chat", seen(1020.0, arrivals=9), FLEET, UP, 11.0, 1020.0)
        history.record("embed", None, FLEET, HOLD, 11.5, 1020.5)
    with History(path) as history:
        assert history.arrivals("chat", 10.0, 990.0, 1030.0) == pytest.approx(
            [math.nan, 7, 9, math.nan], nan_ok=True
        )
        first, last = history.decisions("chat")
        assert (str(first.decision), last.decision.desired, last.now) == (str(HOLD), 6, 11.0)
        assert last.observation == seen(1020.0, arrivals=9)
        assert last.fleet == FLEET
        assert [record.pool for record in history.decisions()] == ["chat", "chat", "embed"]
        assert [record.pool for record in history.decisions(limit=1)] == ["embed"]
        assert history.last_decision("embed").observation is None
        assert history.last_decision("nobody") is None


def test_an_interval_without_a_measurement_is_a_gap(history):
    history.record("chat", seen(1010.0), FLEET, HOLD, 1.0, 1010.0)
    history.record("chat", None, FLEET, Hold(5, Reason.METRICS_LOST, Binding.NONE), 11.0, 1020.0)
    history.record("chat", seen(1030.0, arrivals=0), FLEET, HOLD, 21.0, 1030.0)
    history.flush()
    assert history.arrivals("chat", 10.0, 1000.0, 1030.0) == pytest.approx([7, math.nan, 0], nan_ok=True)
    assert [row.start_wall for row in history.intervals("chat", since_wall=1005.0)] == [1020.0]


def test_a_second_instance_is_refused_and_told_who_and_what_to_do(path, history):
    with pytest.raises(HistoryLocked) as refusal:
        History(path)
    assert str(path) in str(refusal.value)
    assert f"process {os.getpid()}" in str(refusal.value)
    assert "another history file" in str(refusal.value)
    history.close()
    History(path).close()


def test_a_reader_needs_no_lock_and_sees_what_the_writer_adds(path, history):
    history.record("chat", seen(1010.0), FLEET, HOLD, 1.0, 1010.0)
    history.flush()
    with HistoryReader(path) as reader:
        assert len(reader.decisions()) == 1
        history.record("chat", seen(1020.0), FLEET, UP, 11.0, 1020.0)
        history.flush()
        assert reader.last_decision("chat").decision.desired == 6
        history.close()
        assert len(reader.decisions()) == 2
    with HistoryReader(path) as reader:
        assert len(reader.decisions()) == 2


def test_a_reader_cannot_write(path, history):
    with HistoryReader(path) as reader, pytest.raises(UsageError, match="readonly"):
        reader._rows("DELETE FROM decisions", ())


WRITE_UNTIL_KILLED = """
import sys
from autoscaler.domain import Binding, Fleet, Hold, Observation, Reason
from autoscaler.telemetry.history import History
history = History(sys.argv[1])
fleet, hold = Fleet(1, 0, 0, 1, 5.0, 9.0), Hold(1, Reason.IDLE, Binding.NONE)
for step in range(10**9):
    end = 10.0 * (step + 1)
    observation = Observation(10.0, step, step, 0.0, 0.0, 0.0, 0, 0, 0.0, end)
    history.record("chat", observation, fleet, hold, end, end)
    if step % 10 == 9:
        history.flush()
        print(step, flush=True)
"""


def test_a_kill_while_writing_loses_nothing_that_was_on_disk(path):
    writer = subprocess.Popen([sys.executable, "-c", WRITE_UNTIL_KILLED, path], stdout=subprocess.PIPE)
    flushed = [int(writer.stdout.readline()) for _ in range(20)][-1]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()

    with HistoryReader(path) as reader:  # before any writer repaired anything
        assert len(reader.decisions(limit=10**6)) > flushed
    with History(path) as history:
        rows = history.intervals("chat")
        assert len(rows) > flushed
        assert [row.arrivals for row in rows] == list(range(len(rows)))
        assert len(history.decisions(limit=10**6)) == len(rows)
        history.record("chat", seen(1e6), FLEET, HOLD, 1e6, 1e6)
        history.flush()
        assert history.last_decision("chat").wall_time == 1e6


def test_of_an_interval_told_twice_the_first_counts(history):
    history.record("chat", seen(1010.0, arrivals=7), FLEET, HOLD, 1.0, 1010.0)
    history.record("chat", seen(1010.0, arrivals=99), FLEET, HOLD, 2.0, 1010.0)
    history.flush()
    assert [row.arrivals for row in history.intervals("chat")] == [7]
    assert len(history.decisions()) == 2


def test_nothing_can_be_recorded_once_closed(history):
    history.close()
    history.close()
    with pytest.raises(ValueError, match="closed"):
        history.record("chat", None, FLEET, HOLD, 1.0, 1.0)


def test_recording_never_waits_for_the_disk_and_nothing_is_lost_when_it_recovers(path, history):
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    for step in range(50):
        history.record("chat", seen(1010.0 + 10 * step), FLEET, HOLD, step, 1010.0 + 10 * step)
    assert history.intervals("chat") == []
    blocker.execute("ROLLBACK")
    blocker.close()
    history.flush()
    assert len(history.intervals("chat")) == 50


@pytest.mark.parametrize(
    "content", [b"start_s,requests\n0,12\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096]
)
@pytest.mark.parametrize("kind", [History, HistoryReader])
def test_a_file_that_is_no_history_is_left_alone(path, content, kind):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(UsageError, match="Move it away"):
        kind(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", [History, HistoryReader])
def test_the_database_of_another_program_is_left_alone(path, kind):
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE cookies (host TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="another program"):
        kind(path)
    assert path.read_bytes() == before


def test_a_history_of_a_later_version_is_left_alone(path):
    History(path).close()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(UsageError, match="schema 99"):
        History(path)


def test_a_damaged_page_is_found_before_anything_is_written(path):
    with History(path) as history:
        for step in range(200):
            history.record("chat", seen(1010.0 + 10 * step), FLEET, HOLD, step, 1010.0 + 10 * step)
    damaged = bytearray(path.read_bytes())
    damaged[2 * 4096 : 6 * 4096] = os.urandom(4 * 4096)
    path.write_bytes(damaged)
    with pytest.raises(UsageError, match="damaged"):
        History(path)
    assert path.read_bytes() == damaged


def test_without_a_file_a_reader_says_so_and_makes_none(path):
    with pytest.raises(UsageError, match="no such file"):
        HistoryReader(path)
    assert not path.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="its folder cannot be made"):
        History(tmp_path / "file" / "history.sqlite")


def test_a_refused_history_leaves_no_lock_behind(path):
    path.parent.mkdir()
    path.write_text("not a history")
    with pytest.raises(UsageError):
        History(path)
    path.unlink()
    History(path).close()


def test_it_may_be_read_from_several_threads(history):
    history.record("chat", seen(1010.0), FLEET, HOLD, 1.0, 1010.0)
    history.flush()
    found = []
    readers = [threading.Thread(target=lambda: found.append(len(history.decisions()))) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert found == [1] * 8


def test_arrivals_are_an_array_of_floats(history):
    counts = history.arrivals("chat", 10.0, 0.0, 50.0)
    assert counts.dtype == np.float64
    assert np.isnan(counts).all()
    assert counts.shape == (5,)


def test_a_closed_history_is_one_file_beside_its_lock(path):
    with History(path) as history:
        history.record("chat", seen(1010.0), FLEET, HOLD, 1.0, 1010.0)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, path.name + ".lock"]


def test_what_a_refusing_disk_did_not_take_is_written_later(path, monkeypatch):
    monkeypatch.setattr("autoscaler.telemetry.history_file._BUSY_TIMEOUT", 0.01)
    monkeypatch.setattr("autoscaler.telemetry.history_writer._RETRY_AFTER", 0.01)
    with History(path) as history:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        for step in range(3):
            history.record("chat", seen(1010.0 + 10 * step), FLEET, HOLD, step, 1010.0 + 10 * step)
            history.flush(timeout=0.1)
        blocker.execute("ROLLBACK")
        blocker.close()
        history.flush()
        assert [row.start_wall for row in history.intervals("chat")] == [1000.0, 1010.0, 1020.0]


def test_past_its_bound_the_queue_drops_the_newest(path, monkeypatch):
    monkeypatch.setattr("autoscaler.telemetry.history._QUEUE_BOUND", 2)
    monkeypatch.setattr("autoscaler.telemetry.history_file._BUSY_TIMEOUT", 0.01)
    monkeypatch.setattr("autoscaler.telemetry.history_writer._RETRY_AFTER", 0.2)
    with History(path) as history:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        history.record("chat", seen(1010.0), FLEET, HOLD, 0.0, 1010.0)
        history.flush(timeout=0.05)
        for step in range(1, 20):
            history.record("chat", seen(1010.0 + 10 * step), FLEET, HOLD, step, 1010.0 + 10 * step)
        blocker.execute("ROLLBACK")
        blocker.close()
        history.flush()
        kept = [row.start_wall for row in history.intervals("chat")]
        assert kept == [1000.0 + 10 * step for step in range(len(kept))]
        assert 1 <= len(kept) < 20
