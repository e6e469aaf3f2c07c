"""Requests that share calls: transcripts of the dispatcher."""

from itertools import pairwise
from math import inf

import pytest

from autoscaler.dispatch import Dispatcher, DispatchOptions, PriorityClass, QueueOptions
from autoscaler.dispatch.actions import Action, Drop, Send, SendBatch
from autoscaler.dispatch.batching import BatchOptions
from autoscaler.dispatch.events import (
    Arrived,
    CallEnd,
    Cancelled,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
)
from autoscaler.dispatch.lease import Lease
from autoscaler.domain import STANDARD, DropReason, Mergeable, Request


def a_request(
    name: str,
    bucket: str | None = "b",
    rows: int = 1,
    rows_max: int = 4,
    *,
    of: str = STANDARD,
    tenant: str = "",
    deadline: float = inf,
) -> Request:
    merge = None if bucket is None else Mergeable(bucket, rows, rows_max)
    return Request(name, 0.0, deadline, priority_class=of, tenant=tenant, merge=merge)


def a_dispatcher(calls_max: int | None = 1, slots: int = 4, service_time_max: float = inf, **queue: object):
    options = DispatchOptions(batching=BatchOptions(service_time_max))
    dispatcher = Dispatcher(QueueOptions(**queue), options)
    assert dispatcher.handle(ReplicaReady("r0", slots, calls_max), now=0.0) == []
    return dispatcher


def arrive(dispatcher: Dispatcher, *requests: Request, now: float = 0.0) -> list[Action]:
    return [action for request in requests for action in dispatcher.handle(Arrived(request), now)]


def sent(actions: list[Action]) -> list[list[str]]:
    """Ids of the requests of each call."""
    calls = []
    for action in actions:
        assert isinstance(action, Send | SendBatch), action
        requests = (action.request,) if isinstance(action, Send) else action.requests
        calls.append([request.id for request in requests])
    return calls


def end(
    dispatcher: Dispatcher, *leases: Lease, now: float = 1.0, how: CallEnd = CallEnd.SERVED
) -> list[Action]:
    return [action for lease in leases for action in dispatcher.handle(SlotFreed(lease, how), now)]


def the_batch(actions: list[Action]) -> SendBatch:
    [action] = actions
    assert isinstance(action, SendBatch), action
    return action


def test_the_first_starts_at_once_and_alone_and_who_waits_meanwhile_shares_the_next_call():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, a_request("a"))
    assert isinstance(send, Send)
    assert arrive(dispatcher, *map(a_request, "bcd")) == []
    batch = the_batch(end(dispatcher, send.lease))
    assert [request.id for request in batch.requests] == ["b", "c", "d"]
    assert [lease.call for lease in batch.leases] == [batch.leases[0].number] * 3
    assert (dispatcher.running, dispatcher.waiting, dispatcher.slots_free) == (3, 0, 0)


def test_nothing_goes_to_a_replica_before_the_last_of_a_batch_has_ended():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, *map(a_request, "abc"))
    batch = the_batch(end(dispatcher, send.lease))
    arrive(dispatcher, a_request("d"))
    assert end(dispatcher, batch.leases[0]) == []
    assert sent(end(dispatcher, batch.leases[1])) == [["d"]]


def test_a_replica_takes_as_many_calls_as_it_may():
    dispatcher = a_dispatcher(calls_max=2, slots=8)
    first, second = arrive(dispatcher, *map(a_request, "abcdef"))
    assert sent([first, second]) == [["a"], ["b"]]
    assert sent(end(dispatcher, first.lease)) == [["c", "d", "e", "f"]]
    assert dispatcher.waiting == 0


def test_a_batch_ends_at_the_rows_of_its_model():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, a_request("a"), *(a_request(name, rows=2) for name in "bcd"))
    batch = the_batch(end(dispatcher, send.lease))
    assert [request.id for request in batch.requests] == ["b", "c"]
    assert [lease.slots for lease in batch.leases] == [2, 2]
    assert dispatcher.replicas[0].busy == 4


def test_one_that_does_not_fit_any_more_is_first_in_the_next():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, a_request("a"), a_request("b"), a_request("c", rows=4), a_request("d"))
    [next_one] = end(dispatcher, send.lease)
    assert sent([next_one]) == [["b"]]
    assert sent(end(dispatcher, next_one.lease)) == [["c"]]


def test_t3_only_equals_share_a_call():
    dispatcher = a_dispatcher()
    [send] = arrive(
        dispatcher, a_request("a"), *(a_request(n, b) for n, b in zip("1234", "xyxy", strict=True))
    )
    batch = the_batch(end(dispatcher, send.lease))
    assert [request.id for request in batch.requests] == ["1", "3"]
    assert sent(end(dispatcher, *batch.leases)) == [["2", "4"]]


def test_one_that_is_never_merged_takes_a_call_of_its_own():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, a_request("a"), a_request("b", None), a_request("c"), a_request("d"))
    [alone] = end(dispatcher, send.lease)
    assert sent([alone]) == [["b"]]
    assert dispatcher.slots_free == 0
    assert sent(end(dispatcher, alone.lease)) == [["c", "d"]]


def test_without_calls_of_its_own_a_replica_merges_nothing():
    dispatcher = a_dispatcher(calls_max=None, slots=1)
    [send] = arrive(dispatcher, *map(a_request, "abc"))
    assert sent(end(dispatcher, send.lease)) == [["b"]]


def test_r6_who_left_or_expired_is_in_no_batch():
    dispatcher = a_dispatcher()
    [send] = arrive(
        dispatcher, a_request("a"), a_request("b"), a_request("c", deadline=0.5), *map(a_request, "de")
    )
    assert dispatcher.handle(Cancelled("b"), now=0.4) == []
    [drop, batch] = end(dispatcher, send.lease, now=0.6)
    assert isinstance(drop, Drop)
    assert (drop.request.id, drop.reason) == ("c", DropReason.DEADLINE_PASSED)
    assert sent([batch]) == [["d", "e"]]


def test_a14_who_leaves_a_running_batch_frees_nothing_for_others_yet():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, *map(a_request, "abc"))
    batch = the_batch(end(dispatcher, send.lease))
    arrive(dispatcher, a_request("d"))
    assert end(dispatcher, batch.leases[0], how=CallEnd.INCONCLUSIVE) == []
    assert (dispatcher.running, dispatcher.replicas[0].busy, dispatcher.replicas[0].free) == (1, 1, 0)
    assert sent(end(dispatcher, batch.leases[1])) == [["d"]]


def test_urgent_classes_go_first_into_a_batch_and_lower_ones_fill_it_up():
    classes = (PriorityClass("high", 1), PriorityClass("low", 2))
    dispatcher = a_dispatcher(classes=classes)
    [send] = arrive(dispatcher, a_request("a", of="low"))
    arrive(dispatcher, *(a_request(n, of="low") for n in "bcd"), *(a_request(n, of="high") for n in "xy"))
    batch = the_batch(end(dispatcher, send.lease))
    assert [request.id for request in batch.requests] == ["x", "y", "b", "c"]
    assert dispatcher.running_by_class() == {"high": 2, "low": 2}


def test_tenants_take_turns_within_a_batch():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, a_request("a"))
    arrive(dispatcher, *(a_request(f"m{i}", tenant="many") for i in range(20)))
    arrive(dispatcher, *(a_request(f"f{i}", tenant="few") for i in range(2)))
    batch = the_batch(end(dispatcher, send.lease))
    assert sorted(request.id for request in batch.requests) == ["f0", "f1", "m0", "m1"]


def test_a_class_stays_below_its_ceiling_in_a_batch_too():
    classes = (PriorityClass("high", 1), PriorityClass("low", 2, slots_share=0.5))
    dispatcher = a_dispatcher(slots=8, classes=classes)
    [send] = arrive(dispatcher, a_request("a", of="high", rows_max=8))
    arrive(dispatcher, *(a_request(n, of="low", rows_max=8) for n in "bcdefgh"))
    batch = the_batch(end(dispatcher, send.lease))
    assert [request.id for request in batch.requests] == ["b", "c", "d", "e"]
    assert dispatcher.running_by_class() == {"high": 0, "low": 4}


def test_a_failed_batch_is_served_one_by_one():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, *map(a_request, "abc"))
    batch = the_batch(end(dispatcher, send.lease))
    actions = []
    for request, lease in zip(batch.requests, batch.leases, strict=True):
        actions += dispatcher.handle(Returned(lease, request, alone=True), now=2.0)
    [alone] = actions
    assert isinstance(alone, Send)
    assert alone.request.merge is None
    [other] = end(dispatcher, alone.lease)
    assert {alone.request.id, other.request.id} == {"b", "c"}
    assert isinstance(other, Send)


def test_being_served_one_by_one_costs_no_retries():
    dispatcher = a_dispatcher(slots=400)
    [send] = arrive(dispatcher, *(a_request(f"q{i}", rows_max=400) for i in range(300)))
    batch = the_batch(end(dispatcher, send.lease))
    actions = []
    for request, lease in zip(batch.requests, batch.leases, strict=True):
        actions += dispatcher.handle(Returned(lease, request, alone=True), now=2.0)
    assert not [action for action in actions if isinstance(action, Drop)]


def test_a_refused_batch_goes_elsewhere_and_is_merged_anew():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, *map(a_request, "abc"))
    batch = the_batch(end(dispatcher, send.lease))
    dispatcher.handle(ReplicaReady("r1", 4, 1), now=1.5)
    [first] = dispatcher.handle(
        Returned(batch.leases[0], batch.requests[0], CallEnd.REFUSED, exclude=True), now=2.0
    )
    assert (first.lease.replica_id, first.request.tried) == ("r1", {"r0"})


def test_a_batch_on_a_lost_replica_leaves_nothing_behind():
    dispatcher = a_dispatcher()
    [send] = arrive(dispatcher, *map(a_request, "abc"))
    batch = the_batch(end(dispatcher, send.lease))
    dispatcher.handle(ReplicaLost("r0"), now=1.0)
    end(dispatcher, *batch.leases, how=CallEnd.BROKE)
    assert (dispatcher.replicas, dispatcher.running, dispatcher.slots_ready) == ((), 0, 0)


def test_a_batch_is_held_to_the_time_that_is_allowed():
    """With s(n) = 20 + 2 n ms, 40 ms allow 10 rows, however many wait and the model takes."""
    dispatcher = a_dispatcher(slots=64, service_time_max=0.040)
    now, number, sizes, free = 0.0, 0, [], True
    lease: tuple[Lease, ...] = ()
    for _ in range(60):
        actions: list[Action] = []
        while dispatcher.waiting < 64:
            actions += arrive(dispatcher, a_request(f"q{number}", rows_max=64), now=now)
            number += 1
        if free:
            [action] = actions
            lease, free = (action.lease,), False
            sizes.append(1)
        now += 0.020 + 0.002 * sizes[-1]
        [action] = end(dispatcher, *lease, now=now)
        lease = (action.lease,) if isinstance(action, Send) else action.leases
        sizes.append(len(lease))
    assert sizes[0] == 1
    assert all(after <= 2 * before for before, after in pairwise(sizes))
    assert set(sizes[-10:]) == {10}


@pytest.mark.parametrize("rows, rows_max", [(0, 4), (5, 4), (-1, 4)])
def test_rows_that_cannot_be_break_the_contract(rows, rows_max):
    with pytest.raises(ValueError, match="rows"):
        arrive(a_dispatcher(), a_request("a", rows=rows, rows_max=rows_max))


def test_no_calls_at_all_break_the_contract():
    with pytest.raises(ValueError, match="calls_max"):
        a_dispatcher(calls_max=0)


def test_a_replica_may_begin_to_take_batches_while_calls_run_on_it():
    dispatcher = a_dispatcher(calls_max=None, slots=2)
    one, two = arrive(dispatcher, *map(a_request, "abcde"))
    assert sent(dispatcher.handle(ReplicaReady("r0", 8, 2), now=0.5)) == []
    assert sent(end(dispatcher, one.lease)) == [["c", "d", "e"]]
    assert dispatcher.replicas[0].busy == 4
    assert end(dispatcher, two.lease) == []
    assert dispatcher.slots_free == 5
