"""Learned slots on simulated servers: the right number for a known law, without to and fro."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch.learned_slots import GENERATION_MIN, WARM_UP, LearnedSlots, SlotOptions
from tests.dispatch.simulated_server import Replica, Sharing, Workers

MANY = 10_000
TARGET = 0.100
LAW = (0.020, 0.002)  # 20 ms + 2 ms b; 100 ms are kept by 40


def law_of(alpha, beta):
    return lambda b: alpha + beta * b


def a_replica(*, law=LAW, scv=0.1, options=None, slots=1, slots_max=MANY, seed=1) -> Replica:
    rng = random.Random(seed)
    learner = LearnedSlots(options or SlotOptions(service_time=TARGET), slots, 0.0, slots_max)
    return Replica(Sharing(law_of(*law), rng, scv), learner, rng)


@pytest.mark.parametrize("scv", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(
    ("law", "target", "right"),
    [
        ((0.020, 0.002), 0.100, 40),
        ((0.020, 0.010), 0.500, 48),
        ((0.100, 0.002), 0.200, 50),
        ((1.000, 0.050), 2.000, 20),
    ],
)
def test_it_finds_the_largest_number_that_keeps_the_objective(law, target, right, scv):
    replica = a_replica(law=law, scv=scv, options=SlotOptions(service_time=target))
    found = replica.run(1500 * sum(law))
    assert found == pytest.approx(right, rel=0.2)


@pytest.mark.parametrize("scv", [0.0, 0.1, 1.0])
def test_having_found_it_it_stays_there(scv):
    replica = a_replica(scv=scv)
    replica.run(20.0)
    before = len(replica.slots)
    replica.run(100.0)
    later = [slots for _, slots in replica.slots[before:]]
    assert all(32 <= slots <= 48 for slots in later)
    steps = [after - earlier for earlier, after in pairwise(later)]
    turns = sum(one * other < 0 for one, other in pairwise(steps))
    assert turns <= 8  # of two thousand generations


def test_it_grows_by_doubling_and_never_far_beyond():
    replica = a_replica(scv=1.0)
    replica.run(60.0)
    numbers = [1, *(slots for _, slots in replica.slots)]
    assert all(after <= 2 * before for before, after in pairwise(numbers))
    assert max(numbers) <= 60


@pytest.mark.parametrize(("workers", "right"), [(1, 2), (4, 8), (8, 16)])
def test_without_an_objective_requests_may_take_twice_as_long_as_alone(workers, right):
    learner = LearnedSlots(SlotOptions(), 1, 0.0, MANY)
    replica = Replica(Workers(workers, 0.2), learner, random.Random(1))
    assert replica.run(400.0) == pytest.approx(right, rel=0.2)


@pytest.mark.parametrize(("load", "least"), [(0.7, 32), (0.95, 32)])
def test_it_finds_it_under_random_arrivals_too(load, least):
    replica = a_replica(scv=1.0)
    capacity = 40 / TARGET
    assert least <= replica.run(120.0, rate=load * capacity) <= 48


@pytest.mark.parametrize(("factor", "right"), [(2.0, 15), (0.5, 90)])
def test_it_follows_a_server_that_became_slower_or_faster(factor, right):
    replica = a_replica()
    assert replica.run(30.0) == pytest.approx(40, rel=0.2)
    replica.server.law = law_of(factor * LAW[0], factor * LAW[1])
    assert replica.run(60.0) == pytest.approx(right, rel=0.2)


def test_the_first_requests_of_a_fresh_replica_are_not_learned_from():
    replica = a_replica(scv=0.0)
    warm = replica.server.law
    replica.server.law = lambda b: 50.0  # it compiles
    replica.run(50.0 * (WARM_UP - 1) + 1.0)
    replica.server.law = warm
    replica.run(10.0)
    assert replica.learner.slots == pytest.approx(40, rel=0.2)
    assert replica.learner.line.seconds(1) == pytest.approx(warm(1), rel=0.1)


def test_a_replica_that_idles_learns_nothing_and_forgets_nothing():
    replica = a_replica()
    found = replica.run(30.0)
    changes = len(replica.slots)
    replica.server.law = law_of(0.5 * LAW[0], LAW[1])  # whatever it does alone
    assert replica.run(3 * 3600.0, rate=0.2) == found
    assert len(replica.slots) == changes
    replica.server.law = law_of(*LAW)
    assert replica.run(30.0) == pytest.approx(40, rel=0.2)


def test_little_load_is_no_reason_to_grow():
    replica = a_replica(slots=8)
    assert replica.run(600.0, rate=10.0) == 8  # one in service, of eight
    assert replica.slots == []


def test_what_the_server_says_is_never_exceeded():
    replica = a_replica(slots=16, slots_max=16)
    assert replica.run(60.0) == 16
    slow = a_replica(law=(0.020, 0.010), slots=16, slots_max=16)
    assert slow.run(60.0) == pytest.approx(8, abs=1)


def test_a_bound_that_is_told_later_holds_at_once():
    replica = a_replica()
    replica.run(30.0)
    replica.learner.bounded(12)
    assert replica.learner.slots == 12
    assert replica.run(30.0) == 12


def test_calls_that_were_not_served_tell_nothing():
    learner = LearnedSlots(SlotOptions(service_time=TARGET), 1, 0.0, MANY)
    for number in range(200):
        learner.started(f"r{number}", float(number))
        assert not learner.ended(f"r{number}", number + 0.01, served=False)
    assert learner.slots == 1
    assert not learner.is_warm


def test_one_call_that_runs_for_hours_does_not_stop_the_learning():
    replica = a_replica(slots=4)
    replica.learner.started("endless", 0.0)
    assert replica.run(60.0) == pytest.approx(40, rel=0.2)
    assert replica.learner.ended("endless", 60.0, served=True) in (True, False)
    assert not replica.learner.ended("endless", 61.0, served=True)


def test_a_request_that_is_sent_again_is_a_new_call():
    learner = LearnedSlots(SlotOptions(service_time=TARGET), 2, 0.0, MANY)
    learner.started("long", 0.0)
    learner.started("again", 1.0)
    learner.ended("again", 2.0, served=False)
    learner.started("again", 3.0)
    learner.ended("again", 4.0, served=True)
    learner.ended("long", 5.0, served=True)
    assert "running=0" in repr(learner)


def test_tokens_are_learned_from_where_they_are_the_objective():
    step = law_of(0.020, 0.001)  # 20 ms + 1 ms b for each token; 50 ms are kept by 30
    rng = random.Random(1)
    learner = LearnedSlots(SlotOptions(token_time=0.050), 1, 0.0, MANY)
    now, tokens, count = 0.0, 100, 0
    for _ in range(150):  # rounds in which all slots serve answers of a hundred tokens, a little apart
        ids = [f"r{count + number}" for number in range(learner.slots)]
        count += len(ids)
        for request_id in ids:
            learner.started(request_id, now)
        token = step(len(ids))
        now += tokens * token
        for request_id in ids:
            learner.ended(request_id, now, served=True)
            learner.paced(request_id, token * rng.gauss(1.0, 0.02), now)
        now += 0.01
    assert learner.slots == pytest.approx(30, rel=0.2)


def test_without_tokens_a_bound_on_them_changes_nothing():
    options = SlotOptions(token_time=0.050)
    replica = a_replica(options=options, slots=4)
    assert replica.run(60.0) == 4


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.floats(0, 10)), max_size=300))
def test_whatever_happens_slots_stay_within_their_bounds(happenings):
    learner = LearnedSlots(SlotOptions(slots_max=8), 3, 0.0, 6)
    now, running = 0.0, set()
    for request_id, served, passed in happenings:
        now += passed
        before = learner.slots
        if request_id in running:
            running.discard(request_id)
            changed = learner.ended(request_id, now, served=served)
            assert changed == (learner.slots != before)
            learner.paced(request_id, passed, now)
        else:
            running.add(request_id)
            learner.started(request_id, now)
        assert 1 <= learner.slots <= 6
        assert f"running={len(running)}" in repr(learner)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"service_time": 0.0}, "need service_time > 0, got 0.0"),
        ({"token_time": -1.0}, "need token_time > 0, got -1.0"),
        ({"service_time": 1.0, "token_time": 0.1}, "give one of them"),
        ({"slots_max": 0}, "need slots_max >= 1, got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        SlotOptions(**options)


def test_a_generation_is_never_smaller_than_its_least():
    learner = LearnedSlots(SlotOptions(service_time=TARGET), 1, 0.0, MANY)
    for number in range(WARM_UP + GENERATION_MIN):
        learner.started(f"r{number}", float(number))
        changed = learner.ended(f"r{number}", number + 0.022, served=True)
        assert not changed or number >= WARM_UP + GENERATION_MIN - 1
