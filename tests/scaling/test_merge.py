"""Observations of the parts of one stream, merged, are those of the whole."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Observation, Outcome, Request, TokenUse
from autoscaler.scaling.merge import carried_on, one_after_another, side_by_side
from autoscaler.scaling.observe import IntervalObserver

TEN = 10.0

services = st.lists(
    st.tuples(
        st.integers(0, 3),  # door
        st.floats(0.0, 9.0),  # arrival
        st.floats(0.0, 3.0),  # wait
        st.floats(0.001, 6.0),  # service time
        st.booleans(),  # refused
    ),
    max_size=30,
)


def observed(requests, ends=(TEN,)) -> list[Observation]:
    """What one observer makes of requests, at the end of each interval."""
    observer, facts, seen = IntervalObserver(0.0), [], []
    for _, at, wait, length, refused in requests:
        request = Request(id=f"{at}", arrived_at=at, deadline=1e9)
        facts.append((at, observer.arrived, (request,)))
        if refused:
            facts.append((at, observer.ended, (request, Outcome.REJECTED)))
            continue
        facts.append((at + wait, observer.started, (request,)))
        facts.append((at + wait + length, observer.slot_freed, (length,)))
        facts.append((at + wait + length, observer.answered, (request, TokenUse(3, 5, False, at))))
    facts.sort(key=lambda fact: fact[0])
    for end in ends:
        while facts and facts[0][0] < end:
            at, tell, given = facts.pop(0)
            tell(*given, at)
        waiting = sum(not refused and at < end <= at + wait for _, at, wait, _, refused in requests)
        running = sum(
            not refused and at + wait < end <= at + wait + length for _, at, wait, length, refused in requests
        )
        oldest = max(
            (end - at for _, at, wait, _, no in requests if not no and at < end <= at + wait), default=0.0
        )
        seen.append(observer.close(end, end, waiting + running, waiting, oldest))
    return seen


def same(one: Observation, other: Observation) -> bool:
    return one == replace(
        other,
        service_time_sum=pytest.approx(other.service_time_sum),
        service_time_square_sum=pytest.approx(other.service_time_square_sum),
        busy_slots_mean=pytest.approx(other.busy_slots_mean, abs=1e-9),
        interval=pytest.approx(other.interval),
    )


@given(services)
def test_the_parts_of_a_stream_merge_to_the_whole(requests):
    whole = observed(requests)[0]
    parts = [observed([each for each in requests if each[0] == door])[0] for door in range(4)]
    assert same(side_by_side(parts, TEN, TEN), whole)


@given(services, st.lists(st.floats(0.1, 9.9), max_size=5, unique=True))
def test_intervals_that_follow_each_other_join_to_the_long_one(requests, cuts):
    cuts = [cut for cut in sorted(cuts) if all(abs(cut - at) > 1e-6 for _, at, *_ in requests)]
    assert same(one_after_another(observed(requests, (*cuts, TEN))), observed(requests)[0])


@given(services)
def test_of_no_door_nothing_came_and_of_one_it_is_its_own(requests):
    seen = observed(requests)[0]
    assert same(side_by_side([seen], TEN, TEN), seen)
    assert side_by_side([], TEN, TEN) == Observation(TEN, 0, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, TEN)


def test_one_part_that_is_partial_makes_the_whole_partial():
    seen = observed([])[0]
    assert side_by_side([seen, replace(seen, is_partial=True)], TEN, TEN).is_partial


def test_rates_are_carried_on_and_so_is_who_waits():
    seen = Observation(
        10.0, 40, 20, 30.0, 90.0, 3.0, 7, 4, 2.5, 100.0, rejected=2, tokens_in=50, tokens_out=5
    )
    assert carried_on(seen, 5.0) == Observation(
        5.0, 20, 10, 15.0, 45.0, 3.0, 7, 4, 2.5, 100.0, rejected=1, tokens_in=25, tokens_out=2
    )


def test_joining_nothing_is_a_mistake():
    with pytest.raises(ValueError, match="at least one"):
        one_after_another([])
