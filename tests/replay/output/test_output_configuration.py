"""The configuration for the traffic can be pasted as it is."""

import numpy as np
import pytest

from autoscaler.domain import Objective
from autoscaler.replay.output.configuration import as_yaml, forecast_told, settings_for
from autoscaler.replay.output.words import Price
from autoscaler.settings.load import load
from tests.fakes.replay_outcome import a_scenario, outcome_of, played


def loaded(outcome, tmp_path, name="access.log"):
    path = tmp_path / "c.yaml"
    path.write_text(as_yaml(settings_for(outcome), name))
    return load(path, {})


def test_what_was_replayed_is_what_is_configured(tmp_path):
    scenario = a_scenario(
        slots_per_replica=8,
        cold_start_mean=240.0,
        control_interval=15.0,
        objective=Objective(0.5, 0.7, 2.5, 0.995),
    )
    settings = loaded(outcome_of(played(), scenario=scenario), tmp_path)
    pool = settings.pools["main"]
    assert settings.control.interval == 15.0
    assert pool.objective == scenario.objective
    assert (pool.slots_per_replica, pool.platform.cold_start_initial) == (8, 240.0)


def test_bounds_leave_room_below_and_above_what_was_used(tmp_path):
    pool = loaded(outcome_of(played()), tmp_path).pools["main"]  # 12 to 20 replicas
    assert (pool.policy.replicas_min, pool.policy.replicas_max) == (6, 30)


def test_no_more_are_asked_for_than_can_be_had(tmp_path):
    scenario = a_scenario(supply_max=17)
    assert loaded(outcome_of(played(), scenario=scenario), tmp_path).pools["main"].policy.replicas_max == 17


def test_long_services_and_waits_raise_the_limits_that_would_cut_them(tmp_path):
    scenario = a_scenario(service_time_mean=120.0, objective=Objective(wait_seconds=60.0))
    settings = loaded(outcome_of(played(), scenario=scenario), tmp_path)
    pool = settings.pools["main"]
    # lognormal, SCV 1: 0.999 quantile = 120 exp(3.09 sqrt(ln 2) - ln 2 / 2) = 1112 s
    assert pool.route.first_byte_timeout > 1112.0
    assert settings.proxy.drain_max > 1112.0
    assert pool.route.wait_timeout >= 180.0


def test_short_ones_keep_the_defaults():
    short = outcome_of(played(), scenario=a_scenario(service_time_mean=1.0))
    keys = {each.key for each in settings_for(short)}
    assert not keys & {"drain", "first_byte", "wait_max"}


@pytest.mark.parametrize("name", ["a: b # c.log", "two\nlines.log", "'{}'.log"])
def test_any_name_of_a_file_leaves_the_configuration_valid(name, tmp_path):
    assert loaded(outcome_of(played()), tmp_path, name).pools["main"].slots_per_replica == 1


def test_each_bound_says_why_and_what_it_may_cost():
    told = as_yaml(settings_for(outcome_of(played(), price=Price(2.0, "$"))), "a.log")
    flat = " ".join(told.replace("#", " ").split())
    assert "It never went below 12 replicas here; half of that" in flat
    assert (
        "It never had more than 20 replicas here; half as many again leave room to grow, at most $60.00 an"
        in flat
    )
    assert all(len(line) <= 100 for line in told.splitlines())


def test_without_ours_there_is_nothing_to_configure():
    assert settings_for(outcome_of(played("fixed"))) == ()


def test_the_rhythm_of_the_day_is_told_if_there_is_one():
    hours = np.arange(0, 24 * 7, 1 / 12)
    day = 300 * (1 + 0.8 * np.sin(2 * np.pi * hours / 24))
    noise = np.random.default_rng(1).poisson(300.0, len(hours)).astype(float)
    for counts, said in ((day, "The time of day explains "), (noise, "No rhythm of the day is seen")):
        outcome = outcome_of(played(), scenario=a_scenario(history=counts, history_interval=300.0))
        assert forecast_told(outcome).startswith(said)
    assert forecast_told(outcome_of(played())).startswith("The traffic is too short")
