"""Slow start, and additive increase after multiplicative decrease."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch.concurrency_limit import ConcurrencyLimit, ConcurrencyOptions


def a_limit(slots: int, now: float = 0.0, **options: float) -> ConcurrencyLimit:
    return ConcurrencyLimit(ConcurrencyOptions(**options), slots, now)


def changes(limit: ConcurrencyLimit, now: float = 0.0) -> list[tuple[float, int]]:
    """Every change that comes by itself, as (when, slots)."""
    found = []
    while (now := limit.next_change(now)) < inf:
        found.append((now, limit.offered(now)))
        assert len(found) < 1000
    return found


def test_without_slow_start_all_slots_are_there_at_once():
    limit = a_limit(8)
    assert (limit.offered(0.0), limit.next_change(0.0)) == (8, inf)


def test_a_new_replica_gets_its_slots_one_by_one():
    limit = a_limit(4, now=100.0, slow_start=20.0)
    assert limit.offered(100.0) == 1
    assert [pair for pair in changes(limit, 100.0) if pair[1] > 1] == [(110.0, 2), (115.0, 3), (120.0, 4)]


def test_a_replica_of_one_slot_has_nothing_to_start_slowly():
    assert a_limit(1, slow_start=20.0).offered(0.0) == 1


def test_backpressure_halves_and_a_slot_comes_back_at_a_time():
    limit = a_limit(8, recovery=10.0)
    limit.backpressure(0.0, now=5.0)
    assert limit.offered(5.0) == 4
    assert changes(limit, 5.0) == [(15.0, 5), (25.0, 6), (35.0, 7), (45.0, 8)]


def test_refusals_of_one_burst_cut_once():
    limit = a_limit(8, settle=1.0)
    for i in range(10):
        limit.backpressure(0.0, now=i / 20)
    assert limit.offered(0.5) == 4
    limit.backpressure(0.0, now=1.5)
    assert limit.offered(1.5) == 2


def test_s2_ten_refusals_in_ten_seconds_never_take_the_last_slot():
    limit = a_limit(1)
    for i in range(10):
        limit.backpressure(1.0, now=float(i))
        assert limit.offered(float(i)) == 1


def test_what_has_grown_back_is_what_is_cut_the_next_time():
    limit = a_limit(8, recovery=1.0)
    limit.backpressure(0.0, now=0.0)
    assert limit.offered(2.0) == 6
    limit.backpressure(0.0, now=2.0)
    assert limit.offered(2.0) == 3


def test_growing_begins_when_the_server_asked_to_be_tried_again():
    limit = a_limit(4, recovery=10.0)
    limit.backpressure(7.0, now=0.0)
    assert limit.retry_at == 7.0
    assert changes(limit) == [(7.0, 2), (17.0, 3), (27.0, 4)]


def test_nobody_is_left_alone_for_ever():
    limit = a_limit(4, retry_after_max=60.0)
    limit.backpressure(86400.0, now=0.0)
    assert limit.retry_at == 60.0


def test_other_slots_are_cut_no_further_and_no_less():
    limit = a_limit(8)
    limit.resize(4)
    assert limit.offered(0.0) == 4
    limit.backpressure(0.0, now=0.0)
    limit.resize(8)
    assert limit.offered(0.0) == 2


def test_a_cut_is_not_forgotten_while_the_replica_has_fewer_slots_for_a_while():
    limit = a_limit(8)
    limit.backpressure(0.0, now=0.0)
    assert limit.offered(0.0) == 4
    for slots in (4, 2, 0, 8):
        limit.resize(slots)
        assert limit.offered(0.0) == min(slots, 4)


def test_a_refusal_while_it_has_no_slot_here_cuts_what_it_had():
    limit = a_limit(8)
    limit.resize(0)
    limit.backpressure(0.0, now=0.0)
    assert (limit.offered(0.0), limit.next_change(0.0)) == (0, inf)
    limit.resize(8)
    assert limit.offered(0.0) == 4


def test_slow_start_goes_on_while_it_has_no_slot_here():
    limit = a_limit(8, slow_start=8.0)
    limit.resize(0)
    assert (limit.offered(2.0), limit.next_change(2.0)) == (0, inf)
    limit.resize(8)
    assert limit.offered(4.0) == 4


@given(
    slots=st.integers(1, 64),
    slow_start=st.one_of(st.just(0.0), st.floats(0.01, 100.0)),
    recovery=st.floats(0.01, 100.0),
    busy=st.lists(st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 50.0)), max_size=6),
)
def test_between_one_and_all_and_every_change_is_announced(slots, slow_start, recovery, busy):
    limit, now = a_limit(slots, slow_start=slow_start, recovery=recovery), 0.0
    for passed, retry_after in busy:
        now += passed
        limit.backpressure(retry_after, now)
        assert 1 <= limit.offered(now) <= slots
    offered, steps = limit.offered(now), 0
    while (then := limit.next_change(now)) < inf:
        assert then > now, "a wake-up that does not come"
        assert limit.offered(now + (then - now) * 0.999) == offered, "a change that was not announced"
        now, offered, steps = then, limit.offered(then), steps + 1
        assert steps <= 2 * slots + 1
    assert offered == slots


@pytest.mark.parametrize(
    "wrong", [{"decrease": 1.0}, {"recovery": 0.0}, {"slow_start": -1.0}, {"settle": -1.0}]
)
def test_an_option_that_cannot_be_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ConcurrencyOptions(**wrong)
