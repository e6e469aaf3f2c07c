"""The central queue on its own: two orders over the same requests, and no garbage that grows."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.domain import Request


def anybody(request: Request) -> bool:
    return True


def turns(queue: CentralQueue, now: float = 0.0) -> list[str]:
    """Take all out; return their ids in the order of service."""
    places = iter(lambda: queue.pop(now, anybody), None)
    return [place.request.id for place in places]


def a_queue(*deadlines: float) -> CentralQueue:
    """Of requests named q0, q1, …, that arrived at 0, 1, … and hold 10 bytes each."""
    queue = CentralQueue()
    for i, deadline in enumerate(deadlines):
        queue.push(Request(f"q{i}", float(i), deadline, body_bytes=10), now=float(i))
    return queue


def test_the_turn_goes_by_arrival_and_the_expiry_by_deadline():
    queue = a_queue(9.0, 3.0, 5.0)
    assert queue.oldest_arrival == 0.0
    assert queue.next_expiry() == 3.0
    assert [request.id for request in queue.take_expired(5.0)] == ["q1", "q2"]
    assert (queue.waiting, queue.bytes, queue.next_expiry()) == (1, 10, 9.0)
    assert turns(a_queue(9.0, 3.0, 5.0)) == ["q0", "q1", "q2"]


def test_who_is_taken_out_is_found_in_neither_order():
    queue = a_queue(1.0, 2.0)
    assert queue.remove("q0").request.id == "q0"
    assert queue.remove("q0") is None
    assert "q0" not in queue.places
    assert queue.next_expiry() == 2.0
    assert queue.take_expired(1.5) == []
    assert turns(queue) == ["q1"]


def test_an_id_that_comes_again_has_only_its_new_deadline():
    queue = a_queue(1.0)
    queue.remove("q0")
    queue.push(Request("q0", 0.0, deadline=7.0), now=0.0)
    assert queue.next_expiry() == 7.0
    assert queue.take_expired(1.0) == []


def test_an_empty_queue_has_nothing_to_say():
    queue = a_queue()
    assert (queue.pop(0.0, anybody), queue.oldest_arrival, queue.next_expiry()) == (None, None, inf)
    assert (queue.waiting, queue.bytes, queue.take_expired(inf)) == (0, 0, [])
    assert repr(queue) == "<CentralQueue waiting=0 bytes=0>"


def test_those_who_never_expire_are_not_taken_for_expired():
    queue = a_queue(inf, 4.0)
    assert queue.next_expiry() == 4.0
    assert [request.id for request in queue.take_expired(inf)] == ["q1"]
    assert queue.next_expiry() == inf


def test_dead_entries_stay_bounded_behind_one_early_deadline():
    queue = a_queue(1.0, inf)  # the first stays on top of the heap, so the dead below it are never skipped
    for i in range(5000):
        queue.push(Request(f"n{i}", 0.0, deadline=10.0 + i), now=0.0)
        if i >= 10:
            queue.remove(f"n{i - 10}")
        assert len(queue.expiries) <= 2 * queue.waiting + 64
    assert queue.next_expiry() == 1.0
    queue.remove("q0")
    assert queue.next_expiry() == 10.0 + 4990
    assert len(queue.take_expired(1e9)) == 10
    assert queue.next_expiry() == inf  # one without a deadline is left, and no sweep gave it one


@given(
    deadlines=st.lists(st.one_of(st.floats(0.0, 20.0), st.just(inf)), max_size=300),
    removed=st.sets(st.integers(0, 299)),
    now=st.floats(0.0, 20.0),
)
def test_exactly_the_expired_come_out_in_order_of_deadline(deadlines, removed, now):
    queue = a_queue(*deadlines)
    for i in removed:
        queue.remove(f"q{i}")
    left = [(deadline, i) for i, deadline in enumerate(deadlines) if i not in removed]
    due = sorted(pair for pair in left if pair[0] <= now)
    assert [request.id for request in queue.take_expired(now)] == [f"q{i}" for _, i in due]
    assert queue.waiting == len(left) - len(due)
    assert queue.bytes == 10 * queue.waiting
