"""While no replica is there the clocks of those who wait stand, each for so long in all."""

from dataclasses import replace
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.actions import Drop
from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.events import (
    Arrived,
    CallEnd,
    ReplicaExpected,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
    Tick,
)
from autoscaler.domain import DropReason
from tests.dispatch.queues import a_request, pop_all, sent, the_drop


def a_dispatcher(clock_stops_max: float = 100.0) -> Dispatcher:
    return Dispatcher(QueueOptions(clock_stops_max=clock_stops_max))


def test_a_cold_start_does_not_eat_the_deadline():
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(a_request("a", deadline=5.0)), now=0.0)
    dispatcher.handle(Arrived(a_request("b", arrived_at=50.0, deadline=55.0)), now=50.0)
    [send] = dispatcher.handle(ReplicaReady("r0", 1), now=90.0)
    assert (send.request.id, send.request.deadline) == ("a", 95.0)  # its clock stood for 90 s
    assert dispatcher.next_wakeup() == 95.0  # of b it stood for 40 s
    assert dispatcher.handle(Tick(), now=95.0)[0].reason is DropReason.DEADLINE_PASSED


def test_a_clock_stands_for_no_longer_than_was_stated():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    dispatcher.handle(Arrived(a_request("a", deadline=5.0)), now=0.0)
    assert dispatcher.next_wakeup() == 105.0
    assert dispatcher.handle(Tick(), now=104.9) == []
    assert the_drop(dispatcher.handle(Tick(), now=105.0)).reason is DropReason.NO_CAPACITY


def test_all_the_times_without_a_replica_count_together():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    dispatcher.handle(ReplicaReady("r0", 1), now=0.0)
    dispatcher.handle(Arrived(a_request("runs")), now=0.0)
    dispatcher.handle(Arrived(a_request("waits", deadline=50.0)), now=0.0)
    dispatcher.handle(ReplicaLost("r0"), now=10.0)
    dispatcher.handle(ReplicaReady("r0", 1), now=70.0)  # 60 s without; it is taken by the one that runs on
    assert dispatcher.next_wakeup() == 110.0
    dispatcher.handle(ReplicaLost("r0"), now=80.0)
    assert dispatcher.next_wakeup() == 150.0  # 40 s are left of the 100
    dispatcher.handle(ReplicaReady("r0", 1), now=90.0)
    assert dispatcher.next_wakeup() == 120.0


def test_one_that_comes_back_unserved_keeps_the_time_it_was_given():
    dispatcher = a_dispatcher()
    dispatcher.handle(Arrived(a_request("a", deadline=5.0)), now=0.0)
    [send] = dispatcher.handle(ReplicaReady("r0", 1), now=90.0)
    dispatcher.handle(ReplicaLost("r0"), now=91.0)
    back = dispatcher.handle(Returned(send.lease, send.request, CallEnd.REFUSED, exclude=True), now=91.0)
    assert back == []
    assert sent(dispatcher.handle(ReplicaReady("r1", 1), now=92.0)) == ["a"]


def test_who_could_not_wait_for_the_next_replica_is_told_at_once_when_it_comes():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    dispatcher.handle(ReplicaExpected(at=160.0), now=0.0)
    late = a_request("late", deadline=30.0)
    assert dispatcher.handle(Arrived(late), now=0.0) == [Drop(late, DropReason.NO_REPLICA_IN_TIME, 160.0)]
    patient = a_request("patient", arrived_at=40.0, deadline=70.0)
    assert dispatcher.handle(Arrived(patient), now=40.0) == []
    dispatcher.handle(ReplicaExpected(None), now=41.0)
    dispatcher.handle(Arrived(a_request("who knows", arrived_at=41.0, deadline=42.0)), now=41.0)
    assert dispatcher.waiting == 2


def test_f11_a_start_of_150_s_refuses_a_client_of_30_s_early_and_serves_one_of_300_s():
    dispatcher = a_dispatcher(clock_stops_max=300.0)
    dispatcher.handle(ReplicaExpected(at=150.0), now=0.0)
    hasty = replace(a_request("hasty", deadline=30.0), given_up_at=30.0)
    assert dispatcher.handle(Arrived(hasty), now=0.0) == [Drop(hasty, DropReason.NO_REPLICA_IN_TIME, 150.0)]
    patient = replace(a_request("patient", deadline=60.0), given_up_at=300.0)
    assert dispatcher.handle(Arrived(patient), now=0.0) == []
    assert sent(dispatcher.handle(ReplicaReady("r0", 1), now=150.0)) == ["patient"]


def test_f11_who_waits_already_is_told_as_soon_as_it_is_known_that_it_waits_in_vain():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    for name, given_up_at in (("a", 30.0), ("b", 90.0), ("c", inf)):
        dispatcher.handle(Arrived(replace(a_request(name, deadline=30.0), given_up_at=given_up_at)), now=0.0)
    told = dispatcher.handle(ReplicaExpected(at=50.0), now=1.0)
    assert [(drop.request.id, drop.reason, drop.retry_after) for drop in told] == [
        ("a", DropReason.NO_REPLICA_IN_TIME, 49.0)
    ]
    told = dispatcher.handle(ReplicaExpected(at=95.0), now=2.0)  # it takes longer than was thought
    assert [drop.request.id for drop in told] == ["b"]
    assert dispatcher.waiting == 1


def test_what_was_expected_is_over_when_a_replica_has_come():
    dispatcher = a_dispatcher(clock_stops_max=10.0)
    dispatcher.handle(ReplicaExpected(at=500.0), now=0.0)
    dispatcher.handle(ReplicaReady("r0", 1), now=1.0)
    dispatcher.handle(ReplicaLost("r0"), now=2.0)
    assert dispatcher.handle(Arrived(a_request("a", deadline=9.0)), now=2.0) == []
    assert the_drop(dispatcher.handle(Tick(), now=19.0)).retry_after is None


def test_a_pool_that_does_not_refuse_the_late_lets_them_take_their_chance():
    dispatcher = Dispatcher(QueueOptions(clock_stops_max=0.0, refuse_late=False))
    dispatcher.handle(ReplicaExpected(at=500.0), now=0.0)
    assert dispatcher.handle(Arrived(a_request("a", deadline=9.0)), now=0.0) == []
    assert dispatcher.handle(ReplicaExpected(at=600.0), now=1.0) == []


def test_the_clock_of_a_client_does_not_stand():
    dispatcher = a_dispatcher(clock_stops_max=100.0)
    dispatcher.handle(Arrived(replace(a_request("a", deadline=5.0), given_up_at=20.0)), now=0.0)
    assert dispatcher.next_wakeup() == 20.0
    dispatcher.handle(Arrived(a_request("b")), now=0.0)
    dispatcher.handle(ReplicaReady("r0", 1), now=10.0)  # a runs; had it waited, until 15 s
    dispatcher.handle(ReplicaLost("r0"), now=11.0)
    assert dispatcher.waiting == 1


def test_a_replica_that_is_spared_for_a_moment_stops_the_clocks_for_that_moment():
    dispatcher = a_dispatcher()
    dispatcher.handle(ReplicaReady("r0", 1), now=0.0)
    [send] = dispatcher.handle(Arrived(a_request("a")), now=0.0)
    dispatcher.handle(Arrived(a_request("b", deadline=10.0)), now=0.0)
    assert dispatcher.handle(SlotFreed(send.lease, CallEnd.BROKE), now=1.0) == []
    assert dispatcher.slots_ready == 0
    assert dispatcher.next_wakeup() == 1.25
    assert sent(dispatcher.handle(Tick(), now=1.25)) == ["b"]


@given(
    arrivals=st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 50.0)), max_size=20),
    flips=st.lists(st.floats(0.0, 100.0), max_size=9, unique=True),
    most=st.sampled_from([0.0, 5.0, 40.0, inf]),
)
def test_each_clock_stands_exactly_while_there_is_none(arrivals, flips, most):
    queue = CentralQueue(clock_stops_max=most)
    flips = sorted(flips)
    events = [(at, 1, i) for i, (at, _) in enumerate(arrivals)] + [(at, 0, i) for i, at in enumerate(flips)]
    for at, kind, i in sorted(events):
        if kind == 1:
            queue.push(a_request(f"q{i}", deadline=at + arrivals[i][1]), at)
        elif i % 2 == 0:
            queue.stop_clocks(at)
        else:
            queue.start_clocks(at)
    if len(flips) % 2:
        queue.start_clocks(100.0)
        flips.append(100.0)
    none = list(zip(flips[::2], flips[1::2], strict=True))
    expected = {}
    for i, (at, patience) in enumerate(arrivals):
        stood = sum(max(0.0, end - max(start, at)) for start, end in none)
        expected[f"q{i}"] = at + patience + min(stood, most)
    found = {place.request.id: place.expires_at for place in queue.places.values()}
    assert found.keys() == expected.keys()
    assert all(abs(found[name] - expected[name]) < 1e-9 for name in found)
    assert len(pop_all(queue)) == len(arrivals)
