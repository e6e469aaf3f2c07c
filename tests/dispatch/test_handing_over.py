"""A pool whose requests another pool takes: whose turn it is goes, with the deadline that it has by then."""

from math import inf

import pytest

from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.actions import Drop, HandOver, Send
from autoscaler.dispatch.events import (
    Arrived,
    Closing,
    ReplicaLost,
    ReplicaReady,
    SlotElsewhere,
    SlotFreed,
    TakenOver,
    Tick,
)
from autoscaler.dispatch.priority_class import PriorityClass
from autoscaler.domain import STANDARD, DropReason, Mergeable, Request

HERE = frozenset({STANDARD})


def a_request(name, deadline=100.0, arrived_at=0.0, **more):
    return Request(name, arrived_at, deadline, **more)


def a_dispatcher(*slots, clock_stops_max=0.0, **queue):
    dispatcher = Dispatcher(QueueOptions(clock_stops_max=clock_stops_max, **queue))
    for i, count in enumerate(slots):
        dispatcher.handle(ReplicaReady(f"r{i}", count), now=0.0)
    return dispatcher


def test_whoever_waited_longest_goes_over_first_and_leaves_nothing_behind():
    dispatcher = a_dispatcher()
    for name in ("a", "b"):
        dispatcher.handle(Arrived(a_request(name, body_bytes=7)), now=0.0)
    assert dispatcher.handle(SlotElsewhere(HERE), now=1.0) == [HandOver(a_request("a", body_bytes=7))]
    assert (dispatcher.waiting, dispatcher.waiting_bytes, dispatcher.running) == (1, 7, 0)
    assert dispatcher.handle(SlotElsewhere(HERE), now=1.0) == [HandOver(a_request("b", body_bytes=7))]
    assert dispatcher.handle(SlotElsewhere(HERE), now=1.0) == []
    assert dispatcher.handle(Tick(), now=200.0) == []


def test_it_goes_with_the_deadline_that_its_stopped_clock_has_left_it():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    dispatcher.handle(Arrived(a_request("a", deadline=5.0)), now=0.0)
    [over] = dispatcher.handle(SlotElsewhere(HERE), now=90.0)
    assert (over.request.deadline, over.request.arrived_at) == (95.0, 0.0)


def test_a_client_that_gives_up_earlier_bounds_it():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    dispatcher.handle(Arrived(a_request("a", deadline=5.0, given_up_at=92.0)), now=0.0)
    dispatcher.handle(Arrived(a_request("b", deadline=inf)), now=0.0)
    overs = [dispatcher.handle(SlotElsewhere(HERE), now=90.0)[0] for _ in "ab"]
    assert [over.request.deadline for over in overs] == [92.0, inf]


def test_one_whose_time_is_over_is_told_so_and_does_not_go():
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(a_request("a", deadline=5.0)), now=0.0)
    [drop] = dispatcher.handle(SlotElsewhere(HERE), now=5.0)
    assert isinstance(drop, Drop)


def test_the_more_urgent_goes_first_and_only_who_may_start_there():
    classes = (PriorityClass("low", 2), PriorityClass("high", 1))
    dispatcher = a_dispatcher(classes=classes)
    for name in ("low", "high"):
        dispatcher.handle(Arrived(a_request(name, priority_class=name)), now=0.0)
    assert dispatcher.handle(SlotElsewhere(frozenset({"middle"})), now=1.0) == []
    order = [dispatcher.handle(SlotElsewhere(frozenset({"low", "high"})), now=1.0)[0] for _ in "12"]
    assert [over.request.id for over in order] == ["high", "low"]


def test_what_bound_it_to_this_pool_stays_here():
    dispatcher = a_dispatcher()
    bound = a_request("a", merge=Mergeable("bucket", 2, 4), tried=frozenset({"r9"}))
    dispatcher.handle(Arrived(bound), now=0.0)
    [over] = dispatcher.handle(SlotElsewhere(HERE), now=0.0)
    assert (over.request.merge, over.request.tried) == (None, frozenset())


def test_one_that_is_taken_over_starts_at_once_on_a_free_slot():
    dispatcher = a_dispatcher(1)
    request = a_request("a", arrived_at=-50.0)
    [send] = dispatcher.handle(TakenOver(request), now=1.0)
    assert (send.request, send.lease.replica_id) == (request, "r0")
    dispatcher.handle(SlotFreed(send.lease), now=2.0)
    assert (dispatcher.slots_free, dispatcher.frees_refused) == (1, 0)


def test_no_bound_and_no_closed_door_refuses_it_for_another_pool_has_let_it_in():
    dispatcher = a_dispatcher(1, requests_max=0)
    dispatcher.handle(Closing(), now=0.0)
    assert isinstance(dispatcher.handle(Arrived(a_request("a")), now=0.0)[0], Drop)
    assert isinstance(dispatcher.handle(TakenOver(a_request("b")), now=0.0)[0], Send)
    assert dispatcher.handle(TakenOver(a_request("c")), now=0.0) == []
    assert dispatcher.waiting == 1


def test_one_that_comes_too_late_is_told_so():
    dispatcher = a_dispatcher(1)
    [drop] = dispatcher.handle(TakenOver(a_request("a", deadline=1.0)), now=1.0)
    assert drop.reason is DropReason.DEADLINE_PASSED


def test_an_id_that_is_alive_is_refused_with_nothing_changed():
    dispatcher = a_dispatcher(1)
    dispatcher.handle(TakenOver(a_request("a")), now=0.0)
    with pytest.raises(ValueError, match="alive already"):
        dispatcher.handle(TakenOver(a_request("a")), now=0.0)
    assert dispatcher.running == 1


def test_a_pool_welcomes_nobody_while_its_own_wait_or_no_slot_is_free():
    dispatcher = a_dispatcher()
    assert dispatcher.welcomes() == frozenset()
    dispatcher.handle(Arrived(a_request("own")), now=0.0)
    assert dispatcher.welcomes() == frozenset()
    dispatcher.handle(ReplicaReady("r0", 2), now=0.0)
    assert dispatcher.welcomes() >= HERE
    dispatcher.handle(ReplicaLost("r0"), now=0.0)
    assert dispatcher.welcomes() == frozenset()


def test_a_class_at_its_ceiling_is_not_welcome():
    classes = (PriorityClass("low", 2, slots_share=0.5), PriorityClass("high", 1))
    dispatcher = a_dispatcher(2, classes=classes)
    assert dispatcher.welcomes() == {"low", "high"}
    dispatcher.handle(Arrived(a_request("a", priority_class="low")), now=0.0)
    assert dispatcher.welcomes() == {"high"}
