"""Fine for two weeks, hourly for a year; rolling up neither loses an arrival nor bridges a gap."""

import numpy as np
import pytest

from autoscaler.domain import Binding, Fleet, Hold, Observation, Reason, ScaleTo
from autoscaler.telemetry.history import History
from autoscaler.telemetry.history_retention import DAY, HOUR, Retention

START = 1_700_000_000 // HOUR * HOUR
FLEET = Fleet(1, 0, 0, 1, 5.0, 9.0)
HOLD, UP = Hold(1, Reason.IDLE, Binding.NONE), ScaleTo(2, 1, Reason.DEMAND_RISES, Binding.BAND)


def record(history, end, *, pool="chat", arrivals=1, busy=1.0, interval=300.0, decision=HOLD):
    observation = Observation(interval, arrivals, 2, 3.0, 4.0, busy, 5, 6, 7.0, end)
    history.record(pool, observation, FLEET, decision, end, end)


def live(history, until):
    """Record once an hour for a day, so that this time is believed."""
    for hour in reversed(range(24)):
        record(history, until - HOUR * hour)


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.sqlite") as history:
        yield history


def test_old_intervals_become_hours_that_hold_the_same_arrivals(history):
    for step in range(24):
        record(history, START + 300.0 * (step + 1), arrivals=step, busy=float(step % 2))
    history.flush()
    before = history.arrivals("chat", HOUR, START, START + 2 * HOUR)
    live(history, START + 20 * DAY)
    history.flush()
    first, second, *_, last = history.intervals("chat")
    assert (first.start_wall, first.interval, first.arrivals) == (START, HOUR, sum(range(12)))
    assert (first.completions, first.service_time_sum, first.busy_slots_mean) == (24, 36.0, 0.5)
    assert (second.start_wall, second.queue_depth) == (START + HOUR, 6)
    assert last.interval == 300.0
    np.testing.assert_allclose(history.arrivals("chat", HOUR, START, START + 2 * HOUR), before)


def test_an_hour_with_a_gap_in_it_stays_an_hour_with_a_gap(history):
    for step in [0, 1, 2, 6, 7]:
        record(history, START + 300.0 * (step + 1))
    live(history, START + 20 * DAY)
    history.flush()
    assert [(row.start_wall - START, row.interval) for row in history.intervals("chat")[:-24]] == [
        (0.0, 900.0),
        (1800.0, 600.0),
    ]
    assert np.isnan(history.arrivals("chat", HOUR, START, START + HOUR)).all()


def test_pools_are_not_mixed(history):
    record(history, START + 300.0, pool="chat", arrivals=1)
    record(history, START + 600.0, pool="embed", arrivals=10)
    live(history, START + 20 * DAY)
    history.flush()
    assert history.intervals("chat")[0].arrivals == 1
    assert history.intervals("embed")[0].arrivals == 10


def test_tidying_again_changes_nothing(history):
    for step in range(12):
        record(history, START + 300.0 * (step + 1))
    live(history, START + 20 * DAY)
    history.flush()
    once = history.intervals("chat")[:-24]
    live(history, START + 21 * DAY)
    history.flush()
    assert history.intervals("chat")[:1] == once


def test_the_last_two_weeks_stay_as_they_were_recorded(history):
    record(history, START + 300.0)
    record(history, START + 600.0)
    live(history, START + 13 * DAY)
    history.flush()
    assert [row.interval for row in history.intervals("chat")] == [300.0] * 26


def test_holds_go_after_two_weeks_and_changes_of_the_fleet_after_a_year(history):
    record(history, START, decision=HOLD)
    record(history, START + 300.0, decision=UP)
    live(history, START + 20 * DAY)
    history.flush()
    assert [type(kept.decision) for kept in history.decisions()] == [ScaleTo, *[Hold] * 24]
    live(history, START + 400 * DAY)
    history.flush()
    assert min(kept.wall_time for kept in history.decisions()) == START + 400 * DAY - 23 * HOUR
    assert len(history.intervals("chat")) == 24


def test_how_long_is_a_choice(tmp_path):
    with History(tmp_path / "short.sqlite", Retention(fine=HOUR, rolled_up=DAY)) as history:
        record(history, START + 300.0)
        record(history, START + 600.0)
        live(history, START + 25 * HOUR)
        history.flush()
        assert [row.interval for row in history.intervals("chat")] == [600.0, *[300.0] * 24]


def test_a_clock_that_is_a_year_ahead_for_some_hours_ages_nothing_out(history):
    for step in range(12):
        record(history, START + 300.0 * (step + 1))
    live(history, START + DAY)
    history.flush()
    before = history.intervals("chat"), len(history.decisions())
    for hour in range(12):
        record(history, START + 370 * DAY + HOUR * hour)
        history.flush()
    record(history, START + DAY + HOUR)
    history.flush()
    assert history.intervals("chat")[: len(before[0])] == before[0]
    assert len(history.decisions()) == before[1] + 13
