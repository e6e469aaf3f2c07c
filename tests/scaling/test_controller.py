"""The controller as a whole, on a fluid plant; family names are those of autoscaler failures elsewhere."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from autoscaler.domain import Binding, Fleet, Hold, Objective, Observation, Reason, ScaleTo
from autoscaler.scaling import Controller, DecisionPolicy
from tests.scaling.plant import Plant

RELAXED = Objective(wait_seconds=30.0, wait_quantile=0.95)


def a_plant(replicas: int = 4, objective: Objective = RELAXED, start: float = 60.0, **policy) -> Plant:
    return Plant(Controller(objective, DecisionPolicy(**policy)), replicas=replicas, start=start)


def test_a_steady_load_settles_inside_the_band_and_stays():
    plant = a_plant(replicas=4)
    plant.run(3600.0, rate=2.0)  # 20 erlangs
    settled = plant.sizes[-60:]
    assert min(settled) == max(settled)
    assert 0.60 <= 20.0 / settled[-1] <= 0.75


def test_f1_load_falls_to_zero_and_the_fleet_to_its_floor():
    plant = a_plant(replicas=4)
    plant.run(600.0, rate=1.5)
    plant.run(1200.0, rate=0.0)
    assert plant.sizes[-1] == 1
    assert plant.decisions[-1].reason in (Reason.AT_REPLICAS_MIN, Reason.IDLE, Reason.WITHIN_BAND)


def test_f2_demand_is_seen_although_the_slots_are_full():
    plant = a_plant(replicas=1, start=10.0)
    plant.run(900.0, rate=1.0)  # 10 erlangs before one slot
    assert plant.sizes[-1] >= 10 / 0.75


def test_f4_lost_measurements_hold_the_fleet_and_say_so():
    plant = a_plant(replicas=14)
    plant.run(600.0, rate=1.0)
    before = plant.sizes[-1]
    plant.run(600.0, rate=1.0, measured=False)
    assert plant.sizes[-1] == before
    assert plant.decisions[-1] == Hold(before, Reason.METRICS_LOST, plant.decisions[-1].binding)


def test_f4_the_first_looks_after_a_long_time_without_sight_let_nothing_go():
    """What is measured just then may be anything: a Prometheus that was away begins with fractions."""
    plant = a_plant(replicas=14, scale_down_hold=120.0)
    plant.run(600.0, rate=1.0)
    before = plant.sizes[-1]
    plant.run(180.0, rate=1.0, measured=False)
    plant.run(110.0, rate=0.1)
    assert set(plant.sizes[-11:]) == {before}
    plant.run(600.0, rate=0.1)  # it was so indeed
    assert plant.sizes[-1] < before / 2


def test_f4_a_pool_that_nobody_could_see_does_not_pass_for_idle():
    plant = a_plant(replicas=3, replicas_min=0, scale_down_hold=120.0)
    plant.run(600.0, rate=0.2)
    before = plant.sizes[-1]
    plant.run(180.0, rate=0.2, measured=False)
    plant.run(110.0, rate=0.0)
    assert set(plant.sizes[-11:]) == {before}


def test_f5_a_step_is_ordered_once_and_not_taken_back():
    plant = a_plant(replicas=15, start=180.0)
    plant.run(1200.0, rate=1.0)
    plant.run(180.0, rate=3.0)  # until the first of the new ones are ready
    during_start = plant.sizes[-18:]
    assert during_start == sorted(during_start)  # nothing cancelled while it is needed
    plant.run(1800.0, rate=3.0)
    assert 30 / 0.75 <= plant.sizes[-1] <= 30 / 0.60
    assert max(plant.sizes) <= 30 / 0.60  # no second wave for the backlog


def test_f10_small_numbers_do_not_flap():
    plant = Plant(Controller(Objective(wait_seconds=5.0, wait_quantile=0.9)), replicas=2, service=1 / 49)
    plant.run(3600.0, rate=60.0)  # 1.22 erlangs
    assert set(plant.sizes[-180:]) == {2}


def test_f11_zero_is_reached_only_where_allowed_and_left_on_the_first_request():
    plant = a_plant(replicas=2, replicas_min=0)
    plant.run(600.0, rate=0.1)
    plant.run(3600.0, rate=0.0)
    assert plant.sizes[-1] == 0
    plant.run(10.0, rate=0.1)
    assert plant.sizes[-1] >= 1


def test_f15_a_restart_at_peak_changes_nothing():
    plant = a_plant(replicas=30)
    plant.run(3600.0, rate=2.0)
    before = plant.sizes[-1]
    plant.controller = Controller(RELAXED)
    plant.run(300.0, rate=2.0)
    assert set(plant.sizes[-30:]) == {before}


def test_limits_hold_whatever_comes():
    plant = a_plant(replicas=2, replicas_min=2, replicas_max=6)
    plant.run(300.0, rate=2.0)
    assert max(plant.sizes) == 6
    assert plant.decisions[-1].reason is Reason.AT_REPLICAS_MAX
    plant.run(3600.0, rate=0.0)
    assert plant.sizes[-1] == 2


def a_day(t: float) -> float:
    """A day of 1000 s between 1 and 3 requests a second."""
    return 2.0 + np.sin(2 * np.pi * t / 1000.0)


def test_a_known_season_raises_the_fleet_before_the_rise():
    policy = DecisionPolicy(season=1000.0, forecast_interval=20.0, refit_interval=500.0, scale_down_hold=60.0)
    taught, untaught = (Plant(Controller(RELAXED, policy), replicas=20, start=100.0) for _ in range(2))
    taught.controller.warm(np.array([20 * a_day(20.0 * k + 10) for k in range(200)]), 20.0, 1e6)
    job = taught.controller.refit_due(0.0)
    assert job is not None
    taught.controller.adopt(pickle.loads(pickle.dumps(job))(), 0.0)
    for plant in (taught, untaught):
        plant.run(1000.0, rate=a_day)
    # the rate peaks at 250 s; orders must be placed a start earlier
    at = lambda plant, t: plant.sizes[round(t / 10.0) - 1]  # noqa: E731
    assert at(taught, 100.0) > at(untaught, 100.0)
    assert at(taught, 150.0) >= 27


def test_a_decision_knows_how_it_would_be_without_the_burst_and_when_the_next_one_comes():
    """Quiet half seasons of 5 and busy ones of 20 requests a second; a burst comes in a quiet one."""
    policy = DecisionPolicy(season=4000.0, forecast_interval=40.0, scale_down_hold=60.0)
    plant = Plant(Controller(RELAXED, policy), replicas=70, start=100.0)
    counts = np.tile(np.repeat([200.0, 800.0], 50), 6)
    plant.controller.warm(counts, 40.0, 1e6)
    job = plant.controller.refit_due(0.0)
    assert job is not None
    plant.controller.adopt(job(), 0.0)
    plant.run(1600.0, 5.0)
    calm = plant.decisions[-1].numbers
    assert calm.replicas_as_forecast == pytest.approx(calm.replicas_aim, abs=3)
    assert calm.next_change_in == pytest.approx(2000.0 - 1600.0 - calm.lead_time, abs=150.0)
    plant.run(60.0, 15.0)
    burst = plant.decisions[-1].numbers
    assert burst.replicas_aim > 1.5 * burst.replicas_as_forecast


def test_no_fit_is_due_before_a_season_is_known_and_then_sooner_the_less_is_known():
    policy = DecisionPolicy(season=100.0, forecast_interval=10.0, refit_interval=1000.0)
    controller = Controller(RELAXED, policy)
    controller.warm(np.full(5, 20.0), 10.0, 1e6)
    assert controller.refit_due(0.0) is None
    controller.warm(np.full(30, 20.0), 10.0, 1e6 + 350.0)
    assert controller.refit_due(0.0) is not None
    assert controller.refit_due(119.0) is None
    assert controller.refit_due(120.0) is not None
    controller.warm(np.full(5000, 20.0), 10.0, 1e6 + 51_000.0)
    assert controller.refit_due(1119.0) is None
    assert controller.refit_due(1120.0) is not None


def test_the_same_inputs_give_the_same_decisions():
    def decisions():
        plant = a_plant(replicas=3)
        plant.run(1200.0, rate=a_day)
        return plant.decisions

    assert decisions() == decisions()


def test_a_decision_explains_itself_in_a_sentence():
    plant = a_plant(replicas=4)
    plant.run(600.0, rate=2.0)
    ups = [d for d in plant.decisions if isinstance(d, ScaleTo)]
    sentence = str(ups[0])
    for fact in (
        "Scale up from 4 to",
        "expected in 70 s",
        "x 10 s",
        "erlangs",
        "the band asks",
        "busy expected",
    ):
        assert fact in sentence


def test_warm_up_with_holes_and_odd_intervals_is_taken():
    controller = Controller(RELAXED, DecisionPolicy(season=3600.0, forecast_interval=300.0))
    history = np.full(96, 10.0)
    history[10:14] = np.nan
    controller.warm(history, 60.0, 1e6)
    assert controller.refit_due(0.0) is not None


def test_a_single_odd_observation_is_survived():
    observation = Observation(10.0, 0, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, 1e6)
    controller = Controller(RELAXED)
    fleet = Fleet(1, 0, 0, 1, 60.0, 60.0)
    assert controller.step(observation, fleet, 0.0).desired == 1
    huge = replace(observation, arrivals=10**6, wall_time=1e6 + 10)
    assert controller.step(huge, fleet, 10.0).desired >= 1


@pytest.mark.parametrize("service", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("slots", [1, 8])
def test_the_fleet_follows_the_load_over_scales(service, slots):
    plant = Plant(
        Controller(Objective(wait_seconds=2 * service)), replicas=2, service=service, slots=slots, start=30.0
    )
    plant.run(7200.0, rate=40.0 / service)  # 40 erlangs
    assert 0.5 <= 40.0 / (plant.sizes[-1] * slots) <= 0.75


def test_f4_without_any_sight_of_the_demand_the_fleet_is_never_fewer_than_it_must_be():
    controller = Controller(Objective(), DecisionPolicy(replicas_min=2))
    empty = Fleet(0, 0, 0, 1, 60.0, 60.0)
    assert controller.step(None, empty, 10.0).desired == 2
    there = replace(empty, ready=3)
    assert controller.step(None, there, 20.0) == Hold(3, Reason.METRICS_LOST, Binding.NONE)


def test_what_nobody_carries_out_is_not_lost():
    """Recommendations for two servers of somebody else's: the demand asks for more, and says so each time."""
    controller = Controller(RELAXED, DecisionPolicy(replicas_max=20))
    fleet = Fleet(2, 0, 0, 1, 30.0, 40.0)
    reasons = []
    for tick in range(1, 8):
        observation = Observation(10.0, 60, 20, 20.0, 30.0, 2.0, 40, 38, 9.0, 1e9 + 10.0 * tick)
        reasons.append(controller.step(observation, fleet, 10.0 * tick).reason)
    assert Reason.DEMAND_RISES in reasons
    assert Reason.REPLICAS_LOST not in reasons
    last = controller.step(replace(observation, wall_time=1e9 + 80.0), replace(fleet, ready=1), 80.0)
    assert last.reason is Reason.REPLICAS_LOST


def test_one_request_of_which_nothing_is_known_gets_one_replica():
    controller = Controller(Objective(wait_seconds=2.0), DecisionPolicy(replicas_min=0))
    asleep = Fleet(0, 0, 0, 1, 60.0, 70.0)
    idle = Observation(10.0, 0, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, 1e9)
    controller.step(idle, asleep, 10.0)
    one = Observation(0.1, 1, 0, 0.0, 0.0, 0.0, 1, 1, 0.05, 1e9 + 0.1)
    assert controller.step(one, asleep, 10.1).desired == 1
