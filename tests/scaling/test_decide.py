"""Sizes become decisions: up at once, down with care, inside the band hold."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Binding, Fleet, Hold, Numbers, Objective, Reason, ScaleTo
from autoscaler.scaling.decide import Wanted, decide
from autoscaler.scaling.options import DecisionPolicy

QUIET = Wanted(
    least=4,
    aim=5,
    enough=5,
    most=6,
    recently=5,
    busy=3.0,
    idle=False,
    service_known=True,
    lost=False,
    binding_up=Binding.WAIT,
    binding_down=Binding.BAND,
)


def a_fleet(ready: int, starting: int = 0, slots: int = 1) -> Fleet:
    return Fleet(ready, starting, 0, slots, cold_start_mean=60.0, cold_start_p90=80.0)


def decided(wanted: Wanted, fleet: Fleet, **policy):
    return decide(wanted, fleet, Objective(), DecisionPolicy(**policy), Numbers())


def test_inside_the_band_nothing_moves():
    for ready in (4, 5, 6):
        assert decided(QUIET, a_fleet(ready)) == Hold(ready, Reason.WITHIN_BAND, Binding.WAIT)


def test_too_few_go_to_the_aim_at_once():
    assert decided(QUIET, a_fleet(3)) == ScaleTo(5, 3, Reason.DEMAND_RISES, Binding.WAIT)


def test_f5_what_is_starting_is_credited():
    assert isinstance(decided(QUIET, a_fleet(1, starting=4)), Hold)


def test_too_many_go_down_to_what_suffices_throughout():
    assert decided(QUIET, a_fleet(8)) == ScaleTo(5, 8, Reason.DEMAND_FALLS, Binding.BAND)


def test_what_was_wanted_recently_is_kept():
    assert decided(replace(QUIET, recently=7), a_fleet(8)).desired == 7
    held = decided(replace(QUIET, recently=9), a_fleet(8))
    assert held == Hold(8, Reason.RECENTLY_NEEDED, Binding.BAND)


def test_what_is_needed_before_a_new_one_could_start_is_kept():
    held = decided(replace(QUIET, enough=9, most=7, recently=5), a_fleet(8))
    assert held == Hold(8, Reason.SOON_NEEDED, Binding.BAND)


def test_lost_replicas_are_ordered_again_and_it_is_said_why():
    assert decided(replace(QUIET, lost=True), a_fleet(3)).reason is Reason.REPLICAS_LOST


def test_a_fleet_that_only_the_wait_asks_for_is_not_said_to_be_within_the_band():
    numbers = Numbers(offered_load=2.0)
    held = decide(QUIET, a_fleet(5), Objective(), DecisionPolicy(), numbers)
    assert held.reason is Reason.FEWEST_FOR_WAIT


def test_f8_survivors_are_not_overloaded():
    wanted = replace(QUIET, least=1, aim=1, enough=1, most=1, recently=1, busy=1.4)
    assert decided(wanted, a_fleet(2)) == Hold(2, Reason.SURVIVORS_OVERLOADED, Binding.BAND)


def test_f1_an_idle_pool_goes_to_the_floor_whatever_was_wanted_before():
    wanted = replace(QUIET, least=0, aim=0, enough=0, most=0, recently=7, busy=0.0, idle=True)
    assert decided(wanted, a_fleet(8)) == ScaleTo(1, 8, Reason.IDLE, Binding.REPLICAS_MIN)
    assert decided(wanted, a_fleet(1)) == Hold(1, Reason.AT_REPLICAS_MIN, Binding.REPLICAS_MIN)
    assert decided(wanted, a_fleet(8), replicas_min=0).desired == 0


def test_limits_bind_and_say_so():
    assert decided(QUIET, a_fleet(3), replicas_max=4) == ScaleTo(
        4, 3, Reason.AT_REPLICAS_MAX, Binding.REPLICAS_MAX
    )
    assert decided(replace(QUIET, least=9, aim=9), a_fleet(4), replicas_max=4) == Hold(
        4, Reason.AT_REPLICAS_MAX, Binding.REPLICAS_MAX
    )
    assert decided(QUIET, a_fleet(1), replicas_min=7) == ScaleTo(
        7, 1, Reason.AT_REPLICAS_MIN, Binding.REPLICAS_MIN
    )
    assert decided(QUIET, a_fleet(6), replicas_max=5) == ScaleTo(
        5, 6, Reason.AT_REPLICAS_MAX, Binding.REPLICAS_MAX
    )


def test_f7_step_limits_are_kept_on_every_path():
    assert decided(QUIET, a_fleet(1), step_up_max=2) == ScaleTo(3, 1, Reason.DEMAND_RISES, Binding.STEP)
    assert decided(QUIET, a_fleet(9), step_down_max=2) == ScaleTo(7, 9, Reason.DEMAND_FALLS, Binding.STEP)


def test_without_a_service_time_the_fleet_is_not_lowered():
    wanted = replace(QUIET, service_known=False, most=8)
    assert decided(wanted, a_fleet(8)) == Hold(8, Reason.SERVICE_TIME_UNKNOWN, Binding.WAIT)


@given(
    least=st.integers(0, 50),
    aim=st.integers(0, 60),
    enough=st.integers(0, 60),
    most=st.integers(0, 80),
    recently=st.integers(0, 60),
    busy=st.floats(0, 60),
    idle=st.booleans(),
    ready=st.integers(0, 60),
    starting=st.integers(0, 20),
    low=st.integers(0, 10),
    span=st.integers(1, 50),
    step=st.none() | st.integers(1, 5),
)
def test_no_decision_breaks_a_limit(
    least, aim, enough, most, recently, busy, idle, ready, starting, low, span, step
):
    wanted = replace(
        QUIET, least=least, aim=max(least, aim), enough=enough, most=max(most, enough),
        recently=recently, busy=busy, idle=idle,
    )  # fmt: skip
    fleet = a_fleet(ready, starting)
    decision = decided(
        wanted, fleet, replicas_min=low, replicas_max=low + span, step_up_max=step, step_down_max=step
    )
    if isinstance(decision, Hold):
        assert decision.desired == fleet.ordered
        return
    assert decision.current == fleet.ordered != decision.desired
    assert decision.desired <= low + span
    if decision.desired > fleet.ordered:
        assert step is None or decision.desired - fleet.ordered <= step
    else:  # never below what is needed one lead time ahead, nor below the floor, unless the ceiling is lower
        assert decision.desired >= min(max(least, low), low + span)


def test_every_decision_is_a_sentence():
    sentence = str(decided(QUIET, a_fleet(3)))
    assert sentence.startswith("Scale up from 3 to 5 replicas: demand rises")
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    "bad",
    [
        {"replicas_min": 3, "replicas_max": 2},
        {"replicas_max": 0, "replicas_min": 0},
        {"step_up_max": 0},
        {"scale_down_hold": -1.0},
        {"season": 100.0},
        {"catch_up_time": 0.0},
        {"history_max": 10.0},
    ],
)
def test_an_impossible_policy_is_refused(bad):
    with pytest.raises(ValueError, match="need"):
        DecisionPolicy(**bad)


def test_f4_what_is_not_seen_in_full_may_raise_the_fleet_and_never_lowers_it():
    blind = replace(QUIET, blind=True)
    assert decided(blind, a_fleet(8)) == Hold(8, Reason.PARTLY_BLIND, Binding.BAND)
    assert decided(blind, a_fleet(3)).desired == 5
    assert decided(replace(blind, idle=True, enough=0, most=0), a_fleet(8), replicas_min=0).desired == 8
    assert decided(blind, a_fleet(8), replicas_max=6).desired == 6
