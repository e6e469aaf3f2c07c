"""A record in windows of five minutes."""

from dataclasses import fields

import numpy as np
import pytest

from autoscaler.domain import Objective
from autoscaler.replay.record import Record
from autoscaler.replay.report import report
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from autoscaler.replay.windows import windows
from tests.replay.scripted import Orders, steady


def a_record(arrivals, waits, ticks=(), busy_seconds=0.0) -> Record:
    return Record(
        np.array(arrivals, dtype=float),
        np.array(waits, dtype=float),
        ticks=list(ticks),
        busy_seconds=busy_seconds,
    )


def of(duration: float, **circumstances) -> Scenario:
    objective = Objective(wait_seconds=1.0)
    return Scenario(
        np.zeros(round(duration / 10)), 10.0, service_time_mean=10.0, objective=objective, **circumstances
    )


def test_requests_belong_to_the_window_in_which_they_arrive():
    shown = windows(a_record([10.0, 299.9, 300.0, 650.0], [0.0, 3.0, 1.0, 2.0]), of(900.0))
    assert shown.start.tolist() == [0.0, 300.0, 600.0]
    assert shown.arrivals.tolist() == [2, 1, 1]
    assert shown.met.tolist() == [0.5, 1.0, 0.0]
    assert shown.bad.tolist() == [True, False, True]
    assert shown.wait_p50.tolist() == [1.5, 1.0, 2.0]


def test_a_window_without_arrivals_is_neither_good_nor_bad():
    shown = windows(a_record([10.0], [0.0]), of(600.0))
    assert np.isnan(shown.met[1])
    assert np.isnan(shown.wait_p99[1])
    assert not shown.bad[1]
    assert report("p", a_record([10.0], [0.0]), of(600.0), 0.0).bad_windows == 0.0


def test_who_never_started_has_waited_to_the_end():
    shown = windows(a_record([10.0], [np.inf]), of(300.0))
    assert (shown.wait_p50[0], shown.met[0]) == (290.0, 0.0)


def test_the_offered_load_is_the_slots_that_the_arrivals_keep_busy():
    """Three requests of 20 s each, two of them in the first 300 s; the last window is half as long."""
    shown = windows(a_record([10.0, 20.0, 310.0], [0.0] * 3, busy_seconds=60.0), of(450.0))
    assert shown.offered_load.tolist() == pytest.approx([2 * 20 / 300, 20 / 150])


def test_states_of_the_fleet_are_means_over_the_intervals_that_end_in_the_window():
    ticks = [(10.0 * k, 3.0, 4.0, 2, 1, 0) for k in range(1, 31)]
    ticks += [(10.0 * k, 1.0, 2.0 * (k % 2), k % 2, 0, 0) for k in range(31, 61)]
    shown = windows(a_record([], [], ticks), of(600.0, slots_per_replica=2))
    assert shown.slots_ready.tolist() == [4.0, 1.0]
    assert shown.replicas_ready.tolist() == [2.0, 0.5]
    assert shown.replicas_starting.tolist() == [1.0, 0.0]
    assert shown.occupancy.tolist() == [0.75, 1.0]


def test_a_fleet_of_none_is_not_occupied():
    assert windows(a_record([], [], [(10.0, 0.0, 0.0, 0, 0, 0)]), of(10.0)).occupancy.tolist() == [0.0]


@pytest.mark.parametrize("length", [60.0, 300.0, 7000.0])
def test_windows_add_up_to_the_whole(length):
    scenario = steady(0.5, 1800, service_time_mean=10.0, replicas_initial=6, objective=Objective())
    record = replay(scenario, Orders())
    shown = windows(record, scenario, length)
    n = len(shown.start)
    assert (
        {len(getattr(shown, field.name)) for field in fields(shown)} == {n} == {int(np.ceil(3600 / length))}
    )
    assert shown.arrivals.sum() == len(record.arrivals)
    whole = report("p", record, scenario, 0.0)
    assert np.nansum(shown.met * shown.arrivals) / shown.arrivals.sum() == pytest.approx(whole.objective_met)
    lengths = np.minimum(3600 - shown.start, length)
    assert (shown.occupancy * shown.slots_ready) @ lengths == pytest.approx(record.busy_seconds, rel=1e-6)
    for k in np.flatnonzero(shown.arrivals):
        waits = record.waits[record.arrivals // length == k]
        expected = np.quantile(waits, [0.5, 0.95, 0.99])
        assert [shown.wait_p50[k], shown.wait_p95[k], shown.wait_p99[k]] == pytest.approx(expected)
