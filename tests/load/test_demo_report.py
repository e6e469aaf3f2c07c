"""The demo's figures, from records and samples whose answer is known."""

from pathlib import Path

import pytest
import yaml

from autoscaler.domain import Binding, Hold, Reason, ScaleTo
from autoscaler.settings import load
from autoscaler.telemetry.status import (
    ForecastStatus,
    ObjectiveStatus,
    OccupancyStatus,
    PoolStatus,
    ReplicasStatus,
    SlotsStatus,
    WaitsStatus,
)
from load.demo.report import fixed_fleet, replica_seconds, report, time_in_band
from load.demo.sampler import Sample
from load.demo.scenario import POOL, Scenario
from load.demo.show import introduction, note, table
from load.free_port import free_address
from load.generator import Record

SCENARIO = Scenario(
    server="plain", triton_home=Path("/nowhere"), seconds=12.0, rate_peak=10.0, wait=1.0, quantile=0.99
)


def a_sample(time, busy=0, slots=0, starting=0, draining=0):
    return Sample(
        time,
        PoolStatus(
            name="embed",
            arrival_rate=1.0,
            forecast=ForecastStatus(),
            replicas=ReplicasStatus(desired=slots, starting=starting, ready=slots, draining=draining),
            slots=SlotsStatus(busy=busy + draining, free=slots - busy, total=slots),
            occupancy=OccupancyStatus(),
            queue_depth=0,
            oldest_wait=0.0,
            waits=WaitsStatus(),
            objective=ObjectiveStatus(1.0, 0.99, 0.6, 0.75),
        ),
    )


def a_record(queue_time=0.0, service_time=0.5, status=200, beyond=0.0):
    return Record(
        1.0,
        1.0,
        end=1.0 + queue_time + service_time + beyond,
        status=status,
        queue_time=queue_time,
        service_time=service_time,
    )


def test_replicas_cost_in_every_state_and_until_the_next_look():
    samples = [a_sample(0.0, slots=2, starting=1), a_sample(4.0, slots=3, draining=1), a_sample(6.0, slots=3)]
    assert replica_seconds(samples, seconds=10.0) == 3 * 4 + 4 * 2 + 3 * 4


def test_occupancy_in_the_band_is_judged_over_whole_windows():
    inside, above, unfinished = a_sample(1.0, 7, 10), a_sample(7.0, 9, 10), a_sample(13.0, 0, 10)
    assert time_in_band(SCENARIO, [inside, above, unfinished]) == 0.5
    assert (
        time_in_band(SCENARIO, [a_sample(0.0, 5, 10), a_sample(5.0, 9, 10), a_sample(6.0)]) == 1.0
    )  # 14 of 20
    assert time_in_band(SCENARIO, []) == 0.0


def test_a_fixed_fleet_is_sized_for_the_peak_by_wait_and_band():
    """10/s of 0.5 s are 5 erlangs: the band asks 5 / 0.75 -> 7, which keeps the wait as well."""
    assert fixed_fleet(SCENARIO, [a_record()] * 3) == 7
    assert fixed_fleet(SCENARIO, []) == 0


def test_a_request_that_failed_or_waited_too_long_missed_the_objective():
    records = [
        a_record(),
        a_record(queue_time=2.0),
        a_record(status=503),
        a_record(queue_time=1.0, beyond=0.01),
    ]
    decisions = [
        ScaleTo(3, 2, Reason.DEMAND_RISES, Binding.BAND),
        Hold(3, Reason.WITHIN_BAND, Binding.NONE),
        ScaleTo(2, 3, Reason.DEMAND_FALLS, Binding.BAND),
        ScaleTo(1, 2, Reason.DEMAND_FALLS, Binding.BAND),
    ]
    samples = [a_sample(0.0, 1, 2), a_sample(6.0, 2, 2)]
    result = report(SCENARIO, records, samples, decisions, interrupted=False)
    assert (result.requests, result.failures, result.objective_met) == (4, 1, 0.5)
    assert (result.scale_ups, result.scale_downs) == (1, 2)
    assert (result.occupancy_mean, result.replicas_min, result.replicas_max) == (0.75, 2, 2)
    assert (result.wait_p50, result.wait_p99) == (0.0, 2.0)
    assert result.unexplained_p99 == pytest.approx(0.01)
    assert result.fixed_fleet_replica_seconds == result.fixed_fleet * result.seconds


def test_a_run_without_requests_has_a_result():
    result = report(SCENARIO, [], [], [], interrupted=True)
    assert (result.requests, result.failures, result.wait_p99) == (0, 0, None)
    assert table(SCENARIO, result).row_count > 0


def test_the_screen_says_what_is_emulated():
    for text in (introduction(SCENARIO), note(SCENARIO)):
        assert "plain HTTP model servers" in text
        assert "emulated accelerator" in text


def test_the_same_seed_asks_the_same_at_the_same_times():
    assert SCENARIO.arrivals().tolist() == SCENARIO.arrivals().tolist()
    assert SCENARIO.outgoing("http://x", 3) == SCENARIO.outgoing("http://x", 3)


@pytest.mark.parametrize("server", ["triton", "plain"])
def test_the_program_accepts_the_configuration(tmp_path, server):
    scenario = Scenario(server=server, triton_home=tmp_path)
    file = tmp_path / "autoscaler.yaml"
    file.write_text(yaml.safe_dump(scenario.configuration(tmp_path, "127.0.0.1:1", "127.0.0.1:2")))
    pool = load(file).pools[POOL]
    assert pool.objective.wait_seconds == scenario.wait
    assert pool.policy.season == scenario.day
    assert str(tmp_path) in str(pool.platform.state_dir)


def test_the_two_listeners_never_get_the_same_port():
    listen, admin = free_address(), free_address()
    assert listen != admin
