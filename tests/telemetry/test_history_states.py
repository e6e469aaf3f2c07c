"""Controllers kept beside their decisions: in files of before, and for as long as they are of use."""

import sqlite3
from contextlib import closing

import pytest

from autoscaler.domain import Binding, Fleet, Hold, Objective, Observation, Reason, ScaleTo
from autoscaler.scaling import Controller
from autoscaler.scaling.fit import Fitted
from autoscaler.telemetry.history import History
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.history_retention import DAY, HOUR

START = 1_700_000_000 // HOUR * HOUR
FLEET = Fleet(1, 0, 0, 1, 5.0, 9.0)
HOLD, UP = Hold(1, Reason.IDLE, Binding.NONE), ScaleTo(2, 1, Reason.DEMAND_RISES, Binding.BAND)


def record(history, end, decision=HOLD):
    history.record("chat", Observation(300.0, 1, 1, 1.0, 1.0, 1.0, 0, 0, 0.0, end), FLEET, decision, end, end)


def keep_a_day(history, day, checkpoint=True):
    """Record a decision an hour, with a checkpoint at 6 o'clock and an adoption at 9."""
    for hour in range(24):
        end = START + day * DAY + hour * HOUR
        if hour == 6 and checkpoint:
            history.checkpoint("chat", Controller(Objective()), end, end)
        record(history, end)
        if hour == 9:
            history.adopted("chat", Fitted(None, 1), end, end)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.sqlite"


def kept(path, what):
    with closing(sqlite3.connect(path)) as connection:
        return [hours for (hours,) in connection.execute(f"SELECT (wall_time - {START}) / 3600 FROM {what}")]


def test_a_file_of_before_there_were_states_is_read_and_then_written_with_nothing_lost(path):
    with History(path) as history:
        record(history, START)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE controller_states")
    with HistoryReader(path) as reader:
        assert reader.checkpoints("chat") == []
        assert len(reader.decisions()) == 1
    with History(path) as history:
        history.checkpoint("chat", Controller(Objective()), START + 300.0, START + 300.0)
        record(history, START + 300.0)
        history.flush()
        assert len(history.decisions()) == 2
        assert [each.decision_id for each in history.checkpoints("chat")] == [2]


def test_a_checkpoint_whose_step_was_never_recorded_is_none(path):
    with History(path) as history:
        history.checkpoint("chat", Controller(Objective()), START, START)
        record(history, START + 300.0)
        history.flush()
        assert history.checkpoints("chat") == []


def test_all_since_the_newest_checkpoint_before_the_fine_two_weeks_is_kept(path):
    with History(path) as history:
        for day in range(20):
            keep_a_day(history, day)
        history.flush()
    with History(path) as history:  # which tidies at its first commit
        record(history, START + 20 * DAY)
    first = min(kept(path, "decisions"))
    # A day counts once 24 of its hours are there: so the believed time is 19 d 1 h, and the fine part begins
    # at 5 d 1 h, before that day's checkpoint at 6.
    assert first == 4 * 24 + 6
    assert min(kept(path, "controller_states WHERE kind = 'checkpoint'")) == first
    assert min(kept(path, "controller_states WHERE kind = 'adopted'")) == first + 3
    assert len(kept(path, "controller_states WHERE kind = 'checkpoint'")) == 16


def test_a_checkpoint_that_is_written_with_all_that_came_after_it_keeps_it_too(path):
    with History(path) as history, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that the disk takes nothing, and all of it gathers
        for day in range(20):
            keep_a_day(history, day)
        other.execute("ROLLBACK")
    assert min(kept(path, "controller_states WHERE kind = 'checkpoint'")) == min(kept(path, "decisions"))


def test_without_a_checkpoint_of_these_days_no_step_is_kept_for_its_sake(path):
    with History(path) as history:
        for day in range(20):
            keep_a_day(history, day, checkpoint=day < 2)
        history.flush()
    with History(path) as history:
        record(history, START + 20 * DAY)
    assert min(kept(path, "decisions")) == 5 * 24 + 1
    assert min(kept(path, "controller_states")) == 5 * 24 + 9


def test_what_changed_the_fleet_is_kept_for_longer_without_what_it_was_made_by(path):
    with History(path) as history:
        record(history, START, UP)
        for day in range(1, 20):
            keep_a_day(history, day)
        history.flush()
    with History(path) as history:
        record(history, START + 20 * DAY)
    assert kept(path, "decisions WHERE kind = 'scale_to'") == [0.0]
    assert min(kept(path, "controller_states")) > 0.0
