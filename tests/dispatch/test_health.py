"""Four inputs, one verdict."""

from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from autoscaler.dispatch.events import CallEnd
from autoscaler.dispatch.health import Health, HealthOptions, HealthState

OPTIONS = HealthOptions(failures_max=3, probe_failures_max=2, ejection=10.0, ejection_max=25.0)
WELL, EJECTED, ON_TRIAL = HealthState.WELL, HealthState.EJECTED, HealthState.ON_TRIAL
FAILURES = [CallEnd.SERVER_FAILED, CallEnd.BROKE, CallEnd.REFUSED]


def a_health(*names: str) -> Health:
    health = Health(OPTIONS)
    for name in names or ("a", "b", "c"):
        health.appear(name)
    return health


def calls(health: Health, name: str, *ends: CallEnd, now: float = 0.0) -> HealthState:
    """Calls that begin and end at `now`, one after the other."""
    for end in ends:
        health.call_ended(name, end, started_at=now, now=now)
    return health.state(name)


@pytest.mark.parametrize("failure", FAILURES)
def test_l4_three_failures_in_a_row_eject_of_whatever_kind(failure):
    health = a_health()
    assert calls(health, "a", failure, failure) is WELL
    assert calls(health, "a", failure) is EJECTED
    assert health.states() == {"a": EJECTED, "b": WELL, "c": WELL}


def test_failures_with_a_success_between_them_are_not_in_a_row():
    health = a_health()
    assert calls(health, "a", CallEnd.BROKE, CallEnd.BROKE, CallEnd.SERVED, CallEnd.BROKE) is WELL


def test_s1_l3_what_clients_do_wrong_touches_nobody():
    health = a_health()
    assert calls(health, "a", *[CallEnd.INCONCLUSIVE] * 100) is WELL
    assert calls(health, "a", CallEnd.BROKE, CallEnd.BROKE, CallEnd.INCONCLUSIVE, CallEnd.BROKE) is EJECTED


def test_k6_one_failed_probe_ejects_nobody_and_enough_in_a_row_do():
    health = a_health()
    health.probed("a", False, 0.0)
    health.probed("a", True, 1.0)
    health.probed("a", False, 2.0)
    assert health.state("a") is WELL
    health.probed("a", False, 3.0)
    assert health.state("a") is EJECTED


def test_t7_a_probe_that_succeeds_does_not_make_up_for_calls_that_fail():
    health = a_health()
    for _ in range(3):
        health.probed("a", True, 0.0)
        calls(health, "a", CallEnd.SERVER_FAILED)
    assert health.state("a") is EJECTED


def test_after_its_time_an_ejected_one_is_tried_and_a_served_call_makes_it_well():
    health = a_health()
    calls(health, "a", *FAILURES, now=5.0)
    assert health.next_change(6.1) == 15.0
    health.advance(14.9)
    assert health.state("a") is EJECTED
    health.advance(15.0)
    assert health.state("a") is ON_TRIAL
    assert calls(health, "a", CallEnd.SERVED, now=15.0) is WELL


def test_a_trial_that_fails_ejects_for_twice_as_long_up_to_the_longest():
    health, now, lengths = a_health(), 0.0, []
    calls(health, "a", *FAILURES)
    for _ in range(3):
        then = health.next_change(now + 1.5)  # past the moment in which it is spared
        lengths.append(then - now)
        now = then
        health.advance(now)
        assert calls(health, "a", CallEnd.REFUSED, now=now) is EJECTED
    assert lengths == [10.0, 20.0, 25.0]


def test_being_well_again_makes_the_next_ejection_short_again():
    health = a_health()
    calls(health, "a", *FAILURES)
    health.advance(10.0)
    calls(health, "a", CallEnd.SERVED, now=10.0)
    calls(health, "a", *FAILURES, now=11.0)
    health.advance(21.0)
    assert health.state("a") is ON_TRIAL


def test_calls_begun_before_a_verdict_say_nothing_about_it():
    health = a_health()
    calls(health, "a", *FAILURES, now=5.0)
    health.advance(15.0)
    health.call_ended("a", CallEnd.SERVED, started_at=4.0, now=16.0)
    assert health.state("a") is ON_TRIAL
    health.call_ended("a", CallEnd.BROKE, started_at=4.0, now=16.0)
    assert health.state("a") is ON_TRIAL


def test_no_trial_while_probes_fail():
    health = a_health()
    health.probed("a", False, 0.0)
    health.probed("a", False, 1.0)
    health.advance(20.0)
    assert (health.state("a"), health.next_change(20.0)) == (EJECTED, inf)
    health.probed("a", True, 21.0)
    assert health.state("a") is ON_TRIAL


def test_at_most_half_are_ejected_and_never_the_last_one():
    for count, most in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)]:
        names = [f"r{i}" for i in range(count)]
        health = a_health(*names)
        for name in names:
            calls(health, name, *FAILURES * 3)
        assert list(health.states().values()).count(EJECTED) == most


def test_who_could_not_be_ejected_is_when_another_is_well_again():
    health = a_health("a", "b")
    calls(health, "a", *FAILURES)
    assert calls(health, "b", *FAILURES) is WELL
    health.advance(10.0)
    calls(health, "a", CallEnd.SERVED, now=10.0)
    assert calls(health, "b", CallEnd.BROKE, now=11.0) is EJECTED


def test_when_the_others_go_the_one_ejected_longest_ago_is_tried():
    health = a_health("a", "b", "c", "d")
    calls(health, "a", *FAILURES, now=1.0)
    calls(health, "b", *FAILURES, now=2.0)
    health.vanish("c", 3.0)
    assert health.states() == {"a": ON_TRIAL, "b": EJECTED, "d": WELL}
    health.vanish("d", 4.0)
    assert health.states() == {"a": ON_TRIAL, "b": EJECTED}


def test_whoever_broke_a_call_is_spared_for_a_moment_even_the_only_one():
    health = a_health("only")
    calls(health, "only", CallEnd.REFUSED)
    assert (health.spared("only", 0.9), health.spared("only", 1.0)) == (True, False)
    assert health.next_change(0.0) == 1.0
    calls(health, "only", CallEnd.BROKE, now=2.0)
    assert (health.spared("only", 2.2), health.spared("only", 2.25)) == (True, False)
    calls(health, "only", CallEnd.REFUSED, now=3.0)
    health.appear("only")  # its platform has looked
    assert not health.spared("only", 3.0)
    calls(health, "only", CallEnd.REFUSED, now=4.0)
    health.appear("only", is_news=False)
    assert health.spared("only", 4.5)


class HealthLaws(RuleBasedStateMachine):
    """Whatever happens to whichever replica."""

    def __init__(self) -> None:
        super().__init__()
        self.health = Health(OPTIONS)
        self.now = 0.0

    @initialize(count=st.integers(1, 5))
    def some_are_there(self, count: int) -> None:
        for i in range(count):
            self.health.appear(f"r{i}")

    @rule(name=st.sampled_from(["r0", "r1", "r2", "r3", "r4"]), end=st.sampled_from(list(CallEnd)))
    def a_call_ends(self, name: str, end: CallEnd) -> None:
        self.health.call_ended(name, end, started_at=self.now, now=self.now)

    @rule(name=st.sampled_from(["r0", "r1", "r2"]), ok=st.booleans())
    def a_probe_comes_back(self, name: str, ok: bool) -> None:
        self.health.probed(name, ok, self.now)

    @rule(name=st.sampled_from(["r0", "r1", "r2", "r3"]), ready=st.booleans())
    def the_platform_speaks(self, name: str, ready: bool) -> None:
        if ready:
            self.health.appear(name)
        else:
            self.health.vanish(name, self.now)

    @rule(passed=st.sampled_from([0.0, 0.1, 1.0, 10.0, 30.0]))
    def time_passes(self, passed: float) -> None:
        self.now += passed
        self.health.advance(self.now)

    @invariant()
    def no_more_than_half_are_ejected(self) -> None:
        states = list(self.health.states().values())
        assert states.count(EJECTED) <= len(states) // 2

    @invariant()
    def whoever_is_not_well_is_watched(self) -> None:
        trial = {name for name, state in self.health.states().items() if state is ON_TRIAL}
        assert trial <= self.health.suspects <= set(self.health.states())

    @invariant()
    def the_next_change_lies_ahead(self) -> None:
        assert self.health.next_change(self.now) > self.now


TestHealthLaws = HealthLaws.TestCase
TestHealthLaws.settings = settings(max_examples=60, stateful_step_count=40)


@pytest.mark.parametrize(
    "wrong", [{"failures_max": 0}, {"probe_failures_max": 0}, {"ejection": 0.0}, {"spare_broken": -1.0}]
)
def test_an_option_that_cannot_be_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HealthOptions(**wrong)
