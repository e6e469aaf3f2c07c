"""Transcripts: each test is the script of one conversation between a driver and the dispatcher."""

from math import inf, nan

import pytest

from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.actions import Action, Drop, Send
from autoscaler.dispatch.events import (
    Arrived,
    Cancelled,
    Closing,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
    Tick,
)
from autoscaler.dispatch.slots import Lease, ReplicaLoad, ReplicaState
from autoscaler.domain import DropReason, Request


def a_request(name: str, deadline: float = 100.0, arrived_at: float = 0.0, body_bytes: int = 0) -> Request:
    return Request(name, arrived_at, deadline, body_bytes)


def a_dispatcher(*slots: int, requests_max: int = 1000, bytes_max: int = 1000) -> Dispatcher:
    """With ready replicas named r0, r1, … of so many slots; deadlines run whether there is one or not."""
    dispatcher = Dispatcher(QueueOptions(requests_max, bytes_max, clock_stops_max=0.0))
    for i, count in enumerate(slots):
        assert dispatcher.handle(ReplicaReady(f"r{i}", count), now=0.0) == []
    return dispatcher


def sent(actions: list[Action]) -> list[str]:
    """Ids of the requests sent; there must be no other action."""
    assert all(isinstance(action, Send) for action in actions)
    return [action.request.id for action in actions]


def test_a_request_starts_at_once_where_a_slot_is_free():
    dispatcher = a_dispatcher(1)
    request = a_request("a")
    assert dispatcher.handle(Arrived(request), now=0.0) == [Send(request, Lease(1, "r0", "a"))]
    assert (dispatcher.waiting, dispatcher.running, dispatcher.slots_free) == (0, 1, 0)
    assert dispatcher.next_wakeup() is None


def test_a_freed_slot_pulls_the_one_who_waited_longest():
    dispatcher = a_dispatcher(1)
    [send] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(second := a_request("b", arrived_at=1.0)), now=1.0)
    dispatcher.handle(Arrived(a_request("c", arrived_at=2.0)), now=2.0)
    assert (dispatcher.waiting, dispatcher.oldest_arrival) == (2, 1.0)
    assert dispatcher.handle(SlotFreed(send.lease), now=3.0) == [Send(second, Lease(2, "r0", "b"))]
    assert (dispatcher.waiting, dispatcher.oldest_arrival) == (1, 2.0)


def test_the_third_of_three_starts_on_the_slot_that_frees_first():
    # F16: services of 30 s and 1 s on two replicas; the third must not stand behind the slow one.
    dispatcher = a_dispatcher(1, 1)
    [slow] = dispatcher.handle(Arrived(a_request("slow")), now=0.0)
    [quick] = dispatcher.handle(Arrived(a_request("quick")), now=0.0)
    assert dispatcher.handle(Arrived(third := a_request("third")), now=0.0) == []
    assert dispatcher.handle(SlotFreed(quick.lease), now=1.0) == [
        Send(third, Lease(3, quick.lease.replica_id, "third"))
    ]
    assert {lease.request_id for lease in dispatcher.live_leases()} == {"slow", "third"}
    assert slow.lease in dispatcher.live_leases()


def test_32_arrivals_at_once_spread_evenly_over_idle_replicas():
    dispatcher = a_dispatcher(8, 8, 8, 8)
    for i in range(32):
        dispatcher.handle(Arrived(a_request(f"q{i}")), now=i * 0.0003)
    assert dispatcher.busy_by_replica() == {"r0": 8, "r1": 8, "r2": 8, "r3": 8}


def test_who_waits_drains_to_new_replicas_at_once():
    # K2: one replica, 20 behind it; two more come.
    dispatcher = a_dispatcher(1)
    for i in range(21):
        dispatcher.handle(Arrived(a_request(f"q{i}")), now=0.0)
    assert sent(dispatcher.handle(ReplicaReady("r1", 2), now=5.0)) == ["q1", "q2"]
    assert sent(dispatcher.handle(ReplicaReady("r2", 1), now=5.0)) == ["q3"]
    assert dispatcher.waiting == 17


def test_a_request_that_waits_past_its_deadline_is_dropped():
    dispatcher = a_dispatcher(1)
    dispatcher.handle(Arrived(a_request("a", deadline=9.0)), now=0.0)
    assert dispatcher.handle(Arrived(second := a_request("b", deadline=1.0)), now=0.2) == []
    assert dispatcher.next_wakeup() == 1.0
    assert dispatcher.handle(Tick(), now=0.999) == []
    assert dispatcher.handle(Tick(), now=1.0) == [Drop(second, DropReason.DEADLINE_PASSED)]
    assert dispatcher.next_wakeup() is None
    assert dispatcher.running == 1  # the deadline of one in service is no business of the queue


def test_who_expired_is_dropped_before_the_freed_slot_is_given_away():
    dispatcher = a_dispatcher(1)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(late := a_request("late", deadline=5.0)), now=0.0)
    dispatcher.handle(Arrived(third := a_request("c", deadline=50.0)), now=0.0)
    assert dispatcher.handle(SlotFreed(first.lease), now=6.0) == [
        Drop(late, DropReason.DEADLINE_PASSED),
        Send(third, Lease(2, "r0", "c")),
    ]


def test_who_expired_without_any_replica_is_told_so_although_one_comes_just_then():
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(late := a_request("late", deadline=5.0)), now=0.0)
    dispatcher.handle(Arrived(waits := a_request("waits", deadline=50.0)), now=0.0)
    assert dispatcher.handle(ReplicaReady("r0", 4), now=5.0) == [
        Drop(late, DropReason.NO_CAPACITY),
        Send(waits, Lease(1, "r0", "waits")),
    ]


@pytest.mark.parametrize("end", [ReplicaDraining("r0"), ReplicaLost("r0")])
def test_a_replica_that_takes_nothing_new_is_no_capacity(end):
    dispatcher = a_dispatcher(1)
    dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(second := a_request("b", deadline=1.0)), now=0.0)
    dispatcher.handle(end, now=0.5)
    assert dispatcher.handle(Tick(), now=1.0) == [Drop(second, DropReason.NO_CAPACITY)]


def test_an_arrival_past_its_deadline_is_never_sent():
    late = a_request("late", deadline=1.0)
    assert a_dispatcher(1).handle(Arrived(late), now=1.0) == [Drop(late, DropReason.DEADLINE_PASSED)]
    assert a_dispatcher().handle(Arrived(late), now=1.0) == [Drop(late, DropReason.NO_CAPACITY)]


def test_a_request_without_a_deadline_waits_and_wakes_nobody():
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(a_request("a", deadline=inf)), now=0.0)
    assert dispatcher.next_wakeup() is None
    assert dispatcher.handle(Tick(), now=1e9) == []
    assert dispatcher.waiting == 1


def test_the_queue_is_bounded_in_requests():
    dispatcher = a_dispatcher(1, requests_max=1)
    dispatcher.handle(Arrived(a_request("a")), now=0.0)
    assert dispatcher.handle(Arrived(a_request("b")), now=0.0) == []
    third = a_request("c")
    assert dispatcher.handle(Arrived(third), now=0.0) == [Drop(third, DropReason.QUEUE_FULL)]
    assert (dispatcher.waiting, dispatcher.running) == (1, 1)


def test_the_queue_is_bounded_in_bytes():
    dispatcher = a_dispatcher(1, bytes_max=100)
    dispatcher.handle(Arrived(a_request("a", body_bytes=70)), now=0.0)
    assert dispatcher.handle(Arrived(a_request("b", body_bytes=70)), now=0.0) == []
    third = a_request("c", body_bytes=31)
    assert dispatcher.handle(Arrived(third), now=0.0) == [Drop(third, DropReason.QUEUE_BYTES_FULL)]
    assert dispatcher.handle(Arrived(a_request("d", body_bytes=30)), now=0.0) == []
    assert (dispatcher.waiting, dispatcher.waiting_bytes) == (2, 100)


def test_a_request_that_starts_at_once_counts_against_no_bound():
    dispatcher = a_dispatcher(1, requests_max=0, bytes_max=0)
    assert sent(dispatcher.handle(Arrived(a_request("a", body_bytes=5000)), now=0.0)) == ["a"]
    second = a_request("b")
    assert dispatcher.handle(Arrived(second), now=0.0) == [Drop(second, DropReason.QUEUE_FULL)]


def test_an_expired_one_makes_room_for_the_arrival_that_finds_it():
    dispatcher = a_dispatcher(requests_max=1)
    dispatcher.handle(Arrived(late := a_request("late", deadline=1.0)), now=0.0)
    assert dispatcher.handle(Arrived(a_request("b")), now=2.0) == [Drop(late, DropReason.NO_CAPACITY)]
    assert dispatcher.waiting == 1


def test_a_client_who_leaves_the_queue_leaves_no_trace():
    # S17, R4: 100 wait, 50 leave.
    dispatcher = a_dispatcher(1)
    [first] = dispatcher.handle(Arrived(a_request("first")), now=0.0)
    for i in range(100):
        dispatcher.handle(Arrived(a_request(f"q{i}", deadline=10.0 + i, body_bytes=3)), now=0.0)
    for i in range(50):
        assert dispatcher.handle(Cancelled(f"q{i}"), now=1.0) == []
    assert (dispatcher.waiting, dispatcher.waiting_bytes, dispatcher.running) == (50, 150, 1)
    assert dispatcher.next_wakeup() == 60.0
    assert sent(dispatcher.handle(SlotFreed(first.lease), now=2.0)) == ["q50"]


def test_a_client_who_leaves_at_the_deadline_is_not_dropped_as_well():
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(a_request("a", deadline=1.0)), now=0.0)
    assert dispatcher.handle(Cancelled("a"), now=1.5) == []
    assert dispatcher.waiting == 0


def test_cancelling_one_unknown_or_already_sent_changes_nothing():
    dispatcher = a_dispatcher(1)
    [send] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    assert dispatcher.handle(Cancelled("a"), now=0.1) == []
    assert dispatcher.handle(Cancelled("nobody"), now=0.1) == []
    assert dispatcher.live_leases() == (send.lease,)


def test_a_request_that_was_not_executed_waits_again_before_all_others():
    dispatcher = a_dispatcher(1, 1)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    [second] = dispatcher.handle(Arrived(a_request("b")), now=0.0)
    assert dispatcher.handle(Arrived(a_request("c")), now=1.0) == []
    dispatcher.handle(ReplicaDraining(first.lease.replica_id), now=2.0)
    assert dispatcher.handle(Returned(first.lease, first.request), now=2.0) == []
    assert (dispatcher.waiting, dispatcher.running) == (2, 1)
    assert sent(dispatcher.handle(SlotFreed(second.lease), now=3.0)) == ["a"]
    assert (
        dispatcher.handle(Returned(first.lease, first.request), now=4.0) == []
    )  # too late: counted, no more
    assert dispatcher.frees_refused == 1


def test_a_request_that_was_not_executed_keeps_its_deadline():
    dispatcher = a_dispatcher(1)
    [send] = dispatcher.handle(Arrived(a_request("a", deadline=5.0)), now=0.0)
    dispatcher.handle(ReplicaLost("r0"), now=4.0)
    returned = dispatcher.handle(Returned(send.lease, send.request), now=6.0)
    assert returned == [Drop(send.request, DropReason.NO_CAPACITY)]


def test_closing_refuses_arrivals_and_serves_those_who_wait():
    dispatcher = a_dispatcher(1)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(second := a_request("b")), now=0.0)
    assert dispatcher.handle(Closing(), now=1.0) == []
    assert dispatcher.closing
    third = a_request("c")
    assert dispatcher.handle(Arrived(third), now=1.0) == [Drop(third, DropReason.CLOSING)]
    [send] = dispatcher.handle(SlotFreed(first.lease), now=2.0)
    assert send == Send(second, Lease(2, "r0", "b"))
    assert dispatcher.handle(SlotFreed(send.lease), now=3.0) == []
    fourth = a_request("d")  # a free slot makes no difference
    assert dispatcher.handle(Arrived(fourth), now=3.0) == [Drop(fourth, DropReason.CLOSING)]


def test_a_lost_replica_keeps_its_leases_until_their_calls_have_broken():
    # A25, E2: the ledger says what runs; nothing goes below zero, nothing is booked for ever.
    dispatcher = a_dispatcher(2)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    [second] = dispatcher.handle(Arrived(a_request("b")), now=0.0)
    dispatcher.handle(ReplicaLost("r0"), now=1.0)
    assert (dispatcher.running, dispatcher.slots_ready, dispatcher.slots_free) == (2, 0, 0)
    dispatcher.handle(SlotFreed(first.lease), now=1.1)
    assert dispatcher.replicas == (ReplicaLoad("r0", ReplicaState.LOST, slots=2, busy=1),)
    dispatcher.handle(SlotFreed(second.lease), now=1.2)
    assert dispatcher.replicas == ()
    assert dispatcher.running == 0


def test_ready_again_with_calls_still_running_is_not_oversubscribed():
    dispatcher = a_dispatcher(2)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(a_request("b")), now=0.0)
    dispatcher.handle(ReplicaLost("r0"), now=1.0)
    dispatcher.handle(Arrived(a_request("c")), now=1.0)
    assert dispatcher.handle(ReplicaReady("r0", 2), now=2.0) == []
    assert dispatcher.slots_free == 0
    assert sent(dispatcher.handle(SlotFreed(first.lease), now=3.0)) == ["c"]


def test_a_slot_given_back_twice_frees_one_slot_and_is_counted():
    dispatcher = a_dispatcher(2)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(a_request("b")), now=0.0)
    dispatcher.handle(SlotFreed(first.lease), now=1.0)
    dispatcher.handle(SlotFreed(first.lease), now=1.0)
    assert (dispatcher.running, dispatcher.slots_free, dispatcher.frees_refused) == (1, 1, 1)


def test_the_id_of_a_request_that_waits_or_runs_is_taken():
    dispatcher = a_dispatcher(1)
    [first] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(a_request("b")), now=0.0)
    for alive in ("a", "b"):
        with pytest.raises(ValueError, match=f"'{alive}' is alive already"):
            dispatcher.handle(Arrived(a_request(alive)), now=1.0)
    dispatcher.handle(SlotFreed(first.lease), now=2.0)
    assert dispatcher.handle(Arrived(a_request("a")), now=3.0) == []  # its first life is over


@pytest.mark.parametrize(
    "broken",
    [
        Arrived(a_request("late")),  # alive
        Arrived(a_request("new", deadline=nan)),
        Arrived(a_request("new", body_bytes=-1)),
        ReplicaReady("r0", -1),
    ],
)
def test_a_broken_contract_loses_no_action(broken):
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(late := a_request("late", deadline=1.0)), now=0.0)
    with pytest.raises(ValueError):
        dispatcher.handle(broken, now=2.0)
    assert dispatcher.handle(Tick(), now=2.0) == [Drop(late, DropReason.NO_CAPACITY)]


def test_the_expected_wait_follows_slots_and_queue():
    dispatcher = a_dispatcher()
    assert dispatcher.expected_wait(10.0) is None
    dispatcher.handle(ReplicaReady("r0", 2), now=0.0)
    assert dispatcher.expected_wait(10.0) == 0.0
    for name in ("a", "b", "c"):
        dispatcher.handle(Arrived(a_request(name)), now=0.0)
    assert dispatcher.expected_wait(10.0) == 10.0  # c and the arrival itself: two starts at 2 slots / 10 s
    dispatcher.handle(ReplicaDraining("r0"), now=0.0)
    assert dispatcher.expected_wait(10.0) is None


def test_the_repr_is_a_small_dashboard():
    dispatcher = a_dispatcher(2, 1)
    assert repr(dispatcher) == "<Dispatcher waiting=0 running=0 slots=0/3 replicas=2 ready>"
    for i in range(5):
        dispatcher.handle(Arrived(a_request(f"q{i}", arrived_at=float(i))), now=float(i))
    dispatcher.handle(ReplicaDraining("r1"), now=5.0)
    dispatcher.handle(Closing(), now=5.5)
    assert repr(dispatcher) == (
        "<Dispatcher waiting=2 running=3 slots=2/2 replicas=1 ready,1 draining oldest=2.5s closing>"
    )
