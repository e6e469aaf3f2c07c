"""What is ordered and does not come: noticed, not ordered without end, and ordered again when it comes."""

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Binding, Fleet, Hold, Objective, Reason
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.supply import Supply, SupplyWatch
from tests.scaling.plant import Plant

RELAXED = Objective(wait_seconds=30.0, wait_quantile=0.95)
START = 60.0


def a_fleet(ready=2, starting=0, asked=2, overdue=0, start=START):
    return Fleet(ready, starting, 0, 1, start, start, overdue=overdue, asked=asked)


class Watched:
    """A watch whose time goes on by ten seconds a step."""

    def __init__(self):
        self.watch, self.now = SupplyWatch(), 0.0
        self.step(a_fleet())

    def step(self, fleet, times=1) -> Supply:
        for _ in range(times):
            self.now += 10.0
            supply = self.watch.update(fleet, self.now)
        return supply


def seen_to_start(watched, starts=4):
    """Let some replicas come within a minute each, one after the other; return how many are ready then."""
    ready = 2
    for _ in range(starts):
        watched.step(a_fleet(ready, 1, ready + 1), times=6)
        ready += 1
        watched.step(a_fleet(ready, 0, ready))
    return ready


def test_starting_replicas_are_counted_on_while_they_may_come_in_time():
    watched = Watched()
    supply = watched.step(a_fleet(2, 5, 7), times=6)
    assert (supply.credited, supply.late, supply.in_time, supply.probes) == (5, 0, 5, None)


def test_delay_and_probability_are_learned_from_what_comes():
    watched = Watched()
    ready = seen_to_start(watched)
    supply = watched.step(a_fleet(ready, 0, ready))
    assert supply.probability == 1.0
    assert supply.delay == pytest.approx(70.0)


def test_an_order_is_late_after_three_starts_and_not_counted_on():
    watched = Watched()
    ready = seen_to_start(watched)
    in_time = watched.step(a_fleet(ready, 1, ready + 1), times=20)
    late = watched.step(a_fleet(ready, 1, ready + 1), times=1)
    assert (in_time.credited, in_time.late) == (1, 0)
    assert (late.credited, late.late) == (0, 1)


def test_where_starts_are_not_known_yet_patience_is_long():
    watched = Watched()
    assert watched.step(a_fleet(2, 1, 3), times=179).late == 0
    assert watched.step(a_fleet(2, 1, 3), times=2).late == 1


def test_what_the_platform_says_does_not_come_is_late_at_once():
    watched = Watched()
    supply = watched.step(a_fleet(2, 1, 8, overdue=5), times=2)
    assert (supply.credited, supply.late, supply.in_time) == (1, 5, 1)
    assert supply.probes == 1


def test_what_the_platform_does_not_show_was_refused_after_half_a_minute():
    watched = Watched()
    assert watched.step(a_fleet(2, 0, 7), times=2).late == 0
    supply = watched.step(a_fleet(2, 0, 7))
    assert (supply.late, supply.probes) == (5, 0)  # a pause begins


def test_one_replica_that_does_not_start_makes_no_shortage():
    watched = Watched()
    ready = seen_to_start(watched)
    watched.step(a_fleet(ready, 30, ready + 30), times=6)
    supply = watched.step(a_fleet(ready + 29, 1, ready + 30), times=60)
    assert supply.late == 1
    assert supply.probes is None


def test_a_probe_that_is_shown_stands_and_is_made_anew_ever_more_seldom():
    watched = Watched()
    watched.step(a_fleet(2, 0, 8, overdue=6), times=2)
    renewed = []
    asked = 3
    for _ in range(3000):
        supply = watched.step(a_fleet(2, 0, asked, overdue=asked - 2))
        if supply.probes == 0:
            renewed.append(watched.now)
        asked = 2 + supply.probes
    pauses = [later - earlier for earlier, later in pairwise(renewed)]
    assert pauses == sorted(pauses)
    assert 1800.0 <= renewed[0] < pauses[0]
    assert set(pauses[-3:]) == {3600.0}


def test_an_order_that_is_refused_is_made_again_after_pauses_that_double_up_to_a_limit():
    watched = Watched()
    asked, ordered = 8, []
    for _ in range(600):
        supply = watched.step(a_fleet(2, 0, asked))
        before, asked = asked, 8 if supply.probes is None else 2 + supply.probes
        if asked > before:
            ordered.append(watched.now)
    pauses = [later - earlier for earlier, later in pairwise(ordered)]
    assert pauses[0] <= 180.0
    assert pauses[1] > pauses[0]
    assert max(pauses) <= 900.0 + 60.0
    assert len(ordered) <= 12  # in 100 minutes, instead of 600


def test_supply_that_is_back_is_used_in_leaps():
    watched = Watched()
    watched.step(a_fleet(2, 0, 60, overdue=58), times=2)
    watched.step(a_fleet(2, 0, 3, overdue=1), times=3)
    assert watched.step(a_fleet(3, 0, 3)).probes == 4
    assert watched.step(a_fleet(3, 4, 7), times=3).probes == 4
    assert watched.step(a_fleet(7, 0, 7)).probes is None  # supply is believed in again


def test_a_probe_that_gets_a_node_lets_more_be_ordered_before_it_is_ready():
    watched = Watched()
    watched.step(a_fleet(2, 0, 60, overdue=58), times=2)
    watched.step(a_fleet(2, 0, 3, overdue=1), times=3)
    assert watched.step(a_fleet(2, 1, 3, overdue=0)).probes == 4


def test_what_was_learned_fades_with_time():
    watched = Watched()
    watched.step(a_fleet(2, 0, 8, overdue=6), times=2)
    assert watched.step(a_fleet(2, 0, 2)).probes is not None
    assert watched.step(a_fleet(2, 0, 2), times=720).probes is None


def test_nothing_is_learned_while_nobody_carries_decisions_out():
    watched = Watched()
    supply = watched.step(a_fleet(2, 4, None, overdue=3), times=300)
    assert (supply.credited, supply.in_time, supply.late, supply.probes) == (4, 4, 3, None)


def test_orders_that_are_called_off_are_no_failure():
    watched = Watched()
    watched.step(a_fleet(2, 5, 7), times=6)
    supply = watched.step(a_fleet(2, 0, 2))
    assert (supply.late, supply.in_time) == (0, 0)
    assert supply.probability != supply.probability  # nothing is known


fleets = st.builds(
    lambda ready, starting, overdue, asked: a_fleet(ready, starting, asked, overdue),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.one_of(st.none(), st.integers(0, 60)),
)


@given(st.lists(fleets, max_size=60))
def test_whatever_comes_the_counts_agree(seen):
    watched = Watched()
    for fleet in seen:
        supply = watched.step(fleet)
        assert 0 <= supply.credited <= fleet.starting
        assert supply.late >= 0
        assert supply.in_time >= 0
        if fleet.asked is not None:
            assert supply.late + supply.in_time == max(0, fleet.asked - fleet.ready)
            assert not supply.probability < 0
            assert not supply.probability > 1


# -- the controller on a plant whose supply ends


def a_plant(replicas=2, supply=2, **given):
    policy = DecisionPolicy(scale_down_hold=60.0)
    return Plant(Controller(RELAXED, policy), replicas=replicas, start=START, supply=supply, **given)


@pytest.mark.parametrize("hides", [False, True])
def test_f6_fifty_are_needed_and_two_can_be_had(hides):
    plant = a_plant(hides=hides)
    plant.run(3600.0, 3.5)
    assert max(plant.sizes[-60:]) <= 2 + 1  # the supply, and one probe
    last = plant.decisions[-1]
    assert (last.reason, last.binding) == (Reason.SUPPLY_SHORT, Binding.SUPPLY)
    assert last.numbers.replicas_wanted > 40
    assert last.numbers.supply_probability < 0.5
    assert "what is ordered does not come, so only a probe is" in str(last)


def test_f6_what_is_pending_is_called_off_at_the_first_tick_after_the_load_has_gone():
    plant = a_plant()
    plant.run(2000.0, 3.5)
    assert plant.pending
    plant.queue = 0.0
    plant.run(10.0, 0.0)
    assert plant.pending == 0
    plant.run(300.0, 0.0)
    assert plant.pending == 0
    assert max(plant.sizes[-29:]) <= 2


def test_supply_that_returns_is_used_within_a_few_starts():
    plant = a_plant()
    plant.run(3600.0, 2.0)
    plant.queue = 0.0
    plant.supply = 1000
    plant.run(1200.0, 2.0)
    assert plant.replicas >= 20 / 0.75
    plant.run(3600.0, 2.0)
    assert plant.decisions[-1].reason in (Reason.WITHIN_BAND, Reason.FEWEST_FOR_WAIT)


def test_supply_that_comes_in_drops_has_no_crowd_of_orders_waiting_for_it():
    plant = a_plant()
    plant.run(3600.0, 3.5)
    waiting = []
    for _ in range(10):
        plant.supply += 1
        plant.run(900.0, 3.5)
        waiting.append(plant.pending)
    assert plant.replicas == 12
    assert max(waiting) <= 4


def test_where_orders_come_nothing_is_different():
    told, untold = a_plant(supply=10_000), a_plant(supply=10_000)
    untold._obey_and_tell, untold._obey = untold._obey, lambda desired: untold_obeys(untold, desired)
    for plant in (told, untold):
        plant.run(1200.0, 1.0)
        plant.run(1200.0, 3.0)
        plant.run(2400.0, 0.5)
    assert told.sizes == untold.sizes


def untold_obeys(plant, desired):
    plant._obey_and_tell(desired)
    plant.asked = None


def test_replicas_min_is_asked_for_whatever_comes():
    plant = a_plant()
    plant.controller = Controller(RELAXED, DecisionPolicy(replicas_min=5))
    plant.run(3600.0, 3.5)
    assert plant.sizes[-1] == 5


def test_a_shortage_survives_being_kept_and_taken_up_again():
    """A controller that was stored and thawed decides the same."""
    plant = a_plant()
    plant.run(2400.0, 3.5)
    other = pickle.loads(pickle.dumps(plant))
    for each in (plant, other):
        each.run(1800.0, 3.5)
        each.supply = 50
        each.run(1800.0, 3.5)
    assert repr(plant.decisions) == repr(other.decisions)  # for NaN is not equal to itself


def test_lost_measurements_leave_a_probe_standing():
    controller = Controller(RELAXED)
    fleet = a_fleet(2, 0, 3, overdue=1)
    decision = controller.step(None, fleet, 10.0)
    assert decision == Hold(3, Reason.METRICS_LOST, decision.binding)
