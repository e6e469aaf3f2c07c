"""Decisions within what comes, what has an effect, and what others have set."""

import pytest

from autoscaler.domain import Binding, Fleet, Hold, Objective, Reason, ScaleTo
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.edits import EditWatch
from autoscaler.scaling.effect import Effect
from autoscaler.scaling.limits import within_effect, within_supply
from autoscaler.scaling.supply import Supply
from tests.scaling.plant import Plant

POLICY = DecisionPolicy(replicas_min=0)


def a_fleet(ready=2, starting=0, overdue=0):
    return Fleet(ready, starting, 0, 1, 60.0, 60.0, overdue=overdue, asked=ready + starting + overdue)


def up_to(desired, current=2):
    return ScaleTo(desired, current, Reason.DEMAND_RISES, Binding.BAND)


def hold(desired):
    return Hold(desired, Reason.WITHIN_BAND, Binding.BAND)


SHORT = Supply(credited=0, late=1, in_time=0, probes=1)


@pytest.mark.parametrize(
    "decision, supply, fleet, calm, expected",
    [
        # All that is ordered comes: nothing changes.
        (up_to(5), Supply(1, 0, 1), a_fleet(2, 1), False, (5, Reason.DEMAND_RISES)),
        (hold(2), Supply(0), a_fleet(2), False, (2, Reason.WITHIN_BAND)),
        # Two are ready, 48 do not come: one probe stays, and then stands.
        (up_to(50), Supply(0, 48, 0, 1), a_fleet(2, 48), False, (3, Reason.SUPPLY_SHORT)),
        (up_to(50), SHORT, a_fleet(2, 1), False, (3, Reason.SUPPLY_SHORT)),
        (up_to(50), SHORT, a_fleet(2, 0, overdue=1), False, (3, Reason.SUPPLY_SHORT)),
        # Those that may still come are not called off.
        (up_to(50), Supply(4, 44, 4, 1), a_fleet(2, 48), False, (6, Reason.SUPPLY_SHORT)),
        # In a pause there is not even a probe.
        (up_to(50), Supply(0, 0, 0, 0), a_fleet(2), False, (2, Reason.SUPPLY_SHORT)),
        # The load has gone, though a forecast still wants them.
        (up_to(50), Supply(0, 48, 0, 1), a_fleet(2, 48), True, (2, Reason.CALLED_OFF)),
        (hold(2), Supply(0, 48, 0, 1), a_fleet(2, 48), True, (2, Reason.CALLED_OFF)),
        # A late one is no shortage; it is waited for as long as it is needed, and not made twice.
        (up_to(3), Supply(0, 1, 0), a_fleet(2, 1), False, (3, Reason.SUPPLY_LATE)),
        (up_to(5), Supply(0, 1, 0), a_fleet(2, 1), False, (5, Reason.DEMAND_RISES)),
        (hold(2), Supply(0, 1, 0), a_fleet(2, 1), False, (2, Reason.CALLED_OFF)),
    ],
)
def test_no_more_is_ordered_than_comes(decision, supply, fleet, calm, expected):
    decided = within_supply(decision, supply, fleet, POLICY, calm=calm)
    assert (decided.desired, decided.reason) == expected
    there = fleet.ordered + fleet.overdue
    if isinstance(decided, ScaleTo):
        assert (decided.current, decided.desired != there) == (there, True)
    else:
        assert decided.desired == there


def test_replicas_min_is_never_undercut():
    policy = DecisionPolicy(replicas_min=4)
    assert within_supply(up_to(9), SHORT, a_fleet(2, 1), policy, calm=False).desired == 4


def test_growth_without_effect_is_held_and_shrinking_is_not():
    effect = Effect(replicas_max=8, fleet_growth=1.0, throughput_gain=0.0)
    assert within_effect(up_to(12, current=8), effect) == Hold(8, Reason.NO_EFFECT, Binding.EFFECT)
    assert within_effect(up_to(12, current=6), effect).desired == 8
    assert within_effect(up_to(12, current=9), effect).desired == 9
    down = ScaleTo(3, 8, Reason.DEMAND_FALLS, Binding.BAND)
    assert within_effect(down, effect) is down
    assert within_effect(hold(8), effect) == hold(8)


def test_an_edit_is_noticed_once_and_stands_for_its_time():
    watch = EditWatch(hold=60.0)
    edited = Fleet(7, 0, 0, 1, 60.0, 60.0, asked=4, edited=7)
    left = Fleet(7, 0, 0, 1, 60.0, 60.0, asked=7)
    seen = [watch.update(fleet, now) for fleet, now in ((edited, 0.0), (left, 59.0), (left, 60.0))]
    assert [(each.here, each.elsewhere, each.stands) if each else None for each in seen] == [
        (4, 7, True),
        (4, 7, True),
        None,
    ]


def a_plant(**policy):
    plant = Plant(Controller(Objective(wait_seconds=30.0), DecisionPolicy(**policy)), replicas=6)
    plant.run(600.0, 0.4)
    return plant, plant.sizes[-1]


def scale_by_hand(plant, replicas):
    plant.replicas, plant.edited = replicas, replicas


def test_f15_an_edit_by_hand_that_does_not_do_is_not_left_so_and_said_with_both_numbers():
    plant, before = a_plant()
    scale_by_hand(plant, 3)
    plant.run(10.0, 0.4)
    said = plant.decisions[-1]
    assert said.desired > 3
    assert (said.numbers.asked_here, said.numbers.asked_elsewhere) == (before, 3)
    assert f"somebody else asked for 3 instead of {before}, which is not left so" in str(said)
    plant.run(10.0, 0.4)
    assert plant.decisions[-1].numbers.asked_elsewhere is None


def test_f15_an_edit_by_hand_stands_for_its_time_where_that_is_set_within_the_limits():
    plant, before = a_plant(edit_hold=300.0, replicas_max=20)
    scale_by_hand(plant, 25)
    plant.run(290.0, 0.4)
    assert set(plant.sizes[-29:]) == {20}
    said = plant.decisions[-1]
    assert (said.reason, said.binding) == (Reason.EDITED_ELSEWHERE, Binding.EDIT)
    assert f"somebody else asked for 25 instead of {before}" in str(said)
    plant.run(600.0, 0.4)
    assert plant.sizes[-1] == before
