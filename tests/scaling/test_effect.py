"""More replicas, no more throughput: noticed, said, and not answered by still more without end."""

from itertools import pairwise

import pytest

from autoscaler.domain import Binding, Objective, Observation, Reason
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.effect import EffectWatch
from tests.scaling.plant import Plant

RELAXED = Objective(wait_seconds=30.0, wait_quantile=0.95)


def an_interval(rate, queue=20, tokens=0):
    served = round(10 * rate)
    return Observation(
        10.0, served + 5, served, 2.0 * served, 8.0 * served, 4, 30, queue, 9.0, 0.0, 0, 0, tokens
    )


class Watched:
    """A watch whose time goes on by ten seconds a step."""

    def __init__(self):
        self.watch, self.now = EffectWatch(wait=5.0), 0.0

    def step(self, rate, ready, times=30, **given):
        for _ in range(times):
            self.now += 10.0
            effect = self.watch.update(an_interval(rate, **given), ready, self.now)
        return effect


def test_a_fleet_of_double_size_that_serves_no_more_has_grown_without_effect():
    watched = Watched()
    assert watched.step(4.0, ready=4) is None
    effect = watched.step(4.0, ready=8)
    assert effect.replicas_max == 8
    assert effect.fleet_growth == pytest.approx(1.0)
    assert effect.throughput_gain == pytest.approx(0.0)


def test_one_that_serves_more_has_had_an_effect_though_not_in_proportion():
    watched = Watched()
    watched.step(4.0, ready=4)
    assert watched.step(6.0, ready=8) is None


def test_a_small_growth_is_not_judged():
    watched = Watched()
    watched.step(4.0, ready=10)
    assert watched.step(4.0, ready=12) is None


def test_growth_in_small_steps_is_judged_once_it_has_added_up():
    watched = Watched()
    watched.step(4.0, ready=10)
    found = [watched.step(4.0, ready=ready) is not None for ready in (11, 12, 13, 14)]
    assert found == [False, False, False, True] or found == [False, False, True, True]


def test_few_services_are_chance():
    watched = Watched()
    watched.step(0.1, ready=4)
    assert watched.step(0.1, ready=6) is None


def test_the_time_in_which_new_replicas_warm_up_is_left_out():
    watched = Watched()
    watched.step(4.0, ready=4)
    watched.step(4.0, ready=8, times=3)
    assert watched.step(8.0, ready=8) is None


def test_as_soon_as_nobody_waits_all_is_forgotten():
    watched = Watched()
    watched.step(4.0, ready=4)
    watched.step(4.0, ready=8)
    assert watched.step(4.0, ready=8, times=1, queue=0) is None
    assert watched.step(4.0, ready=8) is None


def test_waits_within_the_objective_are_no_sign_that_the_fleet_does_all_it_can():
    watched = Watched()
    watched.watch = EffectWatch(wait=9.5)
    watched.step(4.0, ready=4)
    assert watched.step(4.0, ready=8) is None


def test_longer_answers_are_told_apart_by_their_tokens():
    watched = Watched()
    watched.step(4.0, ready=4, tokens=1000)
    assert watched.step(4.0, ready=8, tokens=2000) is None
    assert watched.step(4.0, ready=16, tokens=2000) is not None


def test_now_and_then_a_step_is_tried_after_pauses_that_double():
    watched = Watched()
    watched.step(4.0, ready=8)
    ready, tried = 16, []
    for _ in range(1000):
        effect = watched.step(4.0, ready=ready, times=1)
        if effect is not None and effect.replicas_max > ready:
            tried.append(watched.now)
            ready = effect.replicas_max
    pauses = [later - earlier for earlier, later in pairwise(tried)]
    assert len(tried) <= 6
    assert pauses == sorted(pauses)


def test_a_step_that_has_an_effect_ends_it():
    watched = Watched()
    watched.step(4.0, ready=4)
    watched.step(4.0, ready=8)
    effect = watched.step(4.0, ready=8, times=40)
    assert effect.replicas_max == 10
    assert watched.step(5.5, ready=10) is None


def test_a_narrow_place_behind_all_replicas_is_not_answered_by_ever_more_of_them():
    plant = Plant(Controller(RELAXED, DecisionPolicy(replicas_max=1000)), replicas=20, start=30.0, narrow=1.5)
    plant.run(7200.0, 2.0)
    reasons = {decision.reason for decision in plant.decisions}
    assert Reason.NO_EFFECT in reasons
    said = next(each for each in reversed(plant.decisions) if each.reason is Reason.NO_EFFECT)
    assert said.binding is Binding.EFFECT
    assert "more replicas served no more of them" in str(said)
    assert "look for what they share" in str(said)
    unhindered = max(decision.numbers.replicas_wanted for decision in plant.decisions)
    assert max(plant.sizes) < unhindered / 2


def test_requests_that_have_become_longer_are_served_in_the_end():
    """From the door that looks the same at first: a larger fleet serves no more of them."""
    plant = Plant(Controller(RELAXED), replicas=29, start=60.0)
    plant.run(1800.0, 2.0)
    plant.service = 30.0
    plant.run(3600.0, 2.0)
    assert plant.replicas > 60
    assert plant.queue == 0.0


def test_where_growth_has_an_effect_nothing_is_different():
    plant = Plant(Controller(RELAXED), replicas=5, start=120.0)
    plant.run(1800.0, 0.4)
    plant.run(3600.0, 4.0)
    assert Reason.NO_EFFECT not in {decision.reason for decision in plant.decisions}
    assert plant.queue == 0.0
