"""The replay engine by the rules it states."""

import numpy as np
import pytest

from autoscaler.domain import Objective
from autoscaler.replay.clairvoyant import clairvoyant_gpu_hours
from autoscaler.replay.policies import FixedPolicy, OwnPolicy, peak_replicas
from autoscaler.replay.record import Record
from autoscaler.replay.report import report
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from autoscaler.scaling import DecisionPolicy


def steady(rate: float, hours: float, rng: np.random.Generator, **circumstances) -> Scenario:
    """Poisson demand: counts per second."""
    return Scenario(rng.poisson(rate, round(hours * 3600)).astype(float), 1.0, **circumstances)


def test_all_that_came_was_served_once_and_the_books_agree():
    scenario = steady(
        1.0, 1.0, np.random.default_rng(2), service_time_mean=5.0, replicas_initial=3, cold_start_mean=30.0
    )
    record = replay(scenario, OwnPolicy(scenario), seed=2)
    assert len(record.waits) == len(record.arrivals) == int(scenario.counts.sum())
    busy = sum(tick[1] * scenario.control_interval for tick in record.ticks)
    still_running = 20 * scenario.service_time_mean
    assert record.busy_seconds == pytest.approx(busy, abs=still_running)
    assert record.replica_seconds >= record.busy_seconds - still_running


def test_the_same_seed_gives_the_same_record_and_another_does_not():
    scenario = steady(0.5, 0.5, np.random.default_rng(3), service_time_mean=5.0, replicas_initial=4)
    first, again, other = (replay(scenario, OwnPolicy(scenario), seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first.waits, again.waits)
    assert first.decisions == again.decisions
    assert not np.array_equal(first.arrivals, other.arrivals)


def test_late_binding_a_request_behind_a_slow_one_takes_the_slot_that_frees_first():
    """Family F16: services of 30 s and 1 s on two replicas; the third request waits 1 s, not 30."""
    scenario = Scenario(np.array([0.0]), 60.0, service_time_mean=1.0, replicas_initial=2)
    record = _replayed(scenario, arrivals=[1.0, 2.0, 2.5], services=[30.0, 1.0, 1.0])
    assert record.waits.tolist() == pytest.approx([0.0, 0.0, 0.5])


def _replayed(scenario: Scenario, arrivals: list[float], services: list[float]) -> Record:
    class Scripted(Scenario):
        def arrival_times(self, rng):
            return np.array(arrivals)

        def service_times(self, n_requests, rng):
            return np.array(services)

    fields = {name: getattr(scenario, name) for name in Scenario.__dataclass_fields__}
    return replay(Scripted(**fields), FixedPolicy(scenario.replicas_initial))


def test_a_removed_replica_finishes_what_it_holds_and_is_paid_to_its_end():
    class DownAtOnce:
        interval = None

        def decide(self, observation, fleet, now):
            return 1

    class Scripted(Scenario):
        def arrival_times(self, rng):
            return np.array([1.0, 1.0])

        def service_times(self, n_requests, rng):
            return np.array([25.0, 25.0])

    scenario = Scripted(np.zeros(6), 10.0, service_time_mean=25.0, replicas_initial=2)
    record = replay(scenario, DownAtOnce())
    assert record.waits.tolist() == [0.0, 0.0]
    assert record.replica_seconds == pytest.approx(60.0 + 26.0)
    assert (record.scale_ups, record.scale_downs) == (0, 1)


def test_the_clairvoyant_bound_is_the_peak_in_service_of_each_step():
    class Scripted(Scenario):
        def arrival_times(self, rng):
            return np.array([1.0, 2.0, 15.0])

        def service_times(self, n_requests, rng):
            return np.array([5.0, 20.0, 1.0])

    scenario = Scripted(np.zeros(3), 10.0, service_time_mean=1.0)
    # in service at once: 2 in the first 10 s, 2 in the next (one left over), 1 in the last
    assert clairvoyant_gpu_hours(scenario) == pytest.approx((2 + 2 + 1) * 10 / 3600)


def test_figures_of_a_report():
    scenario = Scenario(
        np.zeros(60), 10.0, service_time_mean=10.0, objective=Objective(wait_seconds=1.0), replicas_initial=1
    )
    record = Record(arrivals=np.array([10.0, 20.0, 310.0, 320.0]), waits=np.array([0.0, 0.5, 2.0, 0.0]))
    record.ticks = [(10.0 * k, 0.7, 1.0, 1, 0, 0) for k in range(1, 31)]
    record.ticks += [(10.0 * k, 0.2, 1.0, 1, 0, 0) for k in range(31, 61)]
    record.replica_seconds, record.busy_seconds = 600.0, 270.0
    figures = report("p", record, scenario, clairvoyant_gpu_hours=0.1)
    assert (figures.objective_met, figures.bad_windows, figures.time_in_band) == (0.75, 0.5, 0.5)
    assert figures.gpu_hours == pytest.approx(1 / 6)
    assert figures.utilization == pytest.approx(0.45)
    assert (figures.hours, figures.replicas_mean, figures.replicas_max) == (pytest.approx(1 / 6), 1.0, 1)
    assert figures.as_dict()["clairvoyant_gpu_hours"] == 0.1


def test_own_policy_follows_a_day_that_a_fixed_fleet_cannot():
    seconds = np.arange(2 * 3600)
    rate = 1.0 + 0.8 * np.sin(2 * np.pi * seconds / 3600)
    scenario = Scenario(
        np.random.default_rng(4).poisson(rate).astype(float),
        1.0,
        service_time_mean=10.0,
        cold_start_mean=30.0,
        replicas_initial=15,
        objective=Objective(wait_seconds=5.0, wait_quantile=0.95),
        history=np.array([60 * (1.0 + 0.8 * np.sin(2 * np.pi * (t + 0.5) / 60)) for t in range(240)]),
        history_interval=60.0,
    )
    policy = DecisionPolicy(
        season=3600.0, forecast_interval=60.0, refit_interval=1800.0, scale_down_hold=120.0
    )
    ours = report("ours", replay(scenario, OwnPolicy(scenario, policy), seed=4), scenario, 0.0)
    peak = peak_replicas(scenario)
    fixed_hours = peak * scenario.duration / 3600
    assert ours.objective_met >= 0.95
    assert ours.gpu_hours < 0.8 * fixed_hours
