"""How a replay ends: with the demand, and with every wait known that could still keep the objective."""

import numpy as np
import pytest

from autoscaler.domain import Objective
from autoscaler.replay.report import report
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from tests.replay.scripted import Orders, scripted


def test_the_last_interval_is_cut_at_the_end_of_the_demand():
    policy = Orders()
    record = replay(scripted([25.0], [100.0], duration=30.0, control_interval=20.0), policy)
    assert [tick[0] for tick in record.ticks] == [20.0, 30.0]
    assert [now for now, _, _ in policy.seen] == [20.0]  # the next decision would come after the end
    assert record.replica_seconds == 30.0
    assert record.busy_seconds == pytest.approx(5.0)


def test_a_demand_shorter_than_an_interval_is_one_interval():
    scenario = Scenario(np.array([3.0, 4.0]), 1.0, service_time_mean=0.1)
    record = replay(scenario, Orders())
    assert [tick[0] for tick in record.ticks] == [2.0]
    assert len(record.waits) == 7


def test_who_waits_at_the_end_is_followed_as_long_as_the_objective_allows():
    """One slot; services of 12 s. The second starts at 13 s, after 3.5 s; the third never in time."""
    scenario = scripted([1.0, 9.5, 9.6], [12.0] * 3, duration=10.0, objective=Objective(wait_seconds=5.0))
    record = replay(scenario, Orders())
    assert record.waits.tolist() == pytest.approx([0.0, 3.5, np.inf])
    figures = report("p", record, scenario, 0.0)
    assert figures.objective_met == pytest.approx(2 / 3)
    assert record.replica_seconds == scenario.duration
    assert record.busy_seconds == pytest.approx(scenario.duration - 1.0)


def test_nothing_at_all_is_replayed_too():
    scenario = scripted([], [], duration=30.0, replicas_initial=0)
    figures = report("p", replay(scenario, Orders()), scenario, 0.0)
    assert (figures.requests, figures.gpu_hours, figures.objective_met, figures.bad_windows) == (0, 0, 1, 0)


@pytest.mark.parametrize(
    "circumstances, said",
    [
        ({"supply_max": 0}, "supply_max >= 1"),
        ({"interruption_rate": -1.0}, "interruption_rate"),
        ({"warm_up": -1.0}, "warm_up"),
        ({"warm_up_slowness": 0.5}, "warm_up_slowness"),
    ],
)
def test_impossible_circumstances_are_refused(circumstances, said):
    with pytest.raises(ValueError, match=said):
        Scenario(np.zeros(1), 1.0, service_time_mean=1.0, **circumstances)


def test_progress_is_told_from_beginning_to_end():
    heard: list[float] = []
    replay(scripted([], [], duration=5000.0), Orders(), progress=heard.append)
    assert len(heard) == 100
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
