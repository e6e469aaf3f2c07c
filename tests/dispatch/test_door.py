"""Who is refused because it would be late, and whether it is worth coming back when told."""

from math import inf, sqrt

import numpy as np
import pytest

from autoscaler.dispatch import Dispatcher, PriorityClass, QueueOptions
from autoscaler.dispatch.actions import Drop
from autoscaler.dispatch.comeback import RETRY_AFTER_MAX, Comebacks
from autoscaler.dispatch.door_rate import WINDOW, DoorRate
from autoscaler.dispatch.events import Arrived, CallEnd, Closing, ReplicaReady, SlotFreed
from autoscaler.domain import DropReason, Request
from tests.dispatch.overload import overload
from tests.dispatch.queues import a_request, the_drop


def a_busy_dispatcher(
    waiting: int, slots: int = 4, service_time: float = 2.0, **options: object
) -> Dispatcher:
    """All slots taken at 100 s, so many waiting, and a mean service time as learned before."""
    dispatcher = Dispatcher(QueueOptions(**options))
    dispatcher.handle(ReplicaReady("r", slots), now=0.0)
    for i in range(20):
        [send] = dispatcher.handle(Arrived(a_request(f"learn{i}")), now=0.0)
        dispatcher.handle(SlotFreed(send.lease), now=service_time)
    for i in range(slots + waiting):
        dispatcher.handle(Arrived(a_request(f"q{i}", arrived_at=100.0)), now=100.0)
    assert dispatcher.waiting == waiting
    return dispatcher


# -- early refusal


def test_who_would_start_past_its_deadline_is_refused_at_once():
    dispatcher = a_busy_dispatcher(waiting=7)  # the next one waits for 8 departures, 2 / 4 s apart: 4 s
    deviation = sqrt(8) * 0.5  # of eight exponential gaps
    late = a_request("late", arrived_at=100.0, deadline=104.0)
    assert the_drop(dispatcher.handle(Arrived(late), now=100.0)).reason is DropReason.PREDICTED_LATE
    in_time = a_request("in time", arrived_at=100.0, deadline=104.01 + deviation / 2)
    assert dispatcher.handle(Arrived(in_time), now=100.0) == []


def test_nobody_is_refused_for_being_late_before_a_service_was_seen():
    dispatcher = Dispatcher(QueueOptions())
    dispatcher.handle(ReplicaReady("r", 1), now=0.0)
    for i in range(50):
        dispatcher.handle(Arrived(a_request(f"q{i}", deadline=0.5)), now=0.0)
    assert dispatcher.waiting == 49


def test_calls_that_broke_teach_no_service_time():
    dispatcher = Dispatcher(QueueOptions())
    dispatcher.handle(ReplicaReady("r", 1), now=0.0)
    for end in (CallEnd.INCONCLUSIVE, CallEnd.SERVER_FAILED):
        [send] = dispatcher.handle(Arrived(a_request("q")), now=0.0)
        dispatcher.handle(SlotFreed(send.lease, end), now=50.0)
    dispatcher.handle(Arrived(a_request("runs")), now=50.0)
    assert dispatcher.expected_wait() is None


def test_who_takes_its_chance_is_not_refused():
    dispatcher = a_busy_dispatcher(waiting=7, refuse_late=False)
    assert dispatcher.handle(Arrived(a_request("late", deadline=100.5)), now=100.0) == []


def test_what_a_request_says_of_itself_counts_for_those_behind_it():
    dispatcher = a_busy_dispatcher(waiting=0)
    dispatcher.handle(Arrived(Request("long", 100.0, inf, service_time=400.0)), now=100.0)
    drop = the_drop(dispatcher.handle(Arrived(a_request("next", deadline=190.0)), now=100.0))
    assert drop.reason is DropReason.PREDICTED_LATE  # 400 s of work on 4 slots


def test_the_predicted_wait_counts_more_urgent_classes_and_not_less_urgent_ones():
    dispatcher = a_busy_dispatcher(waiting=6)
    for i in range(8):
        dispatcher.handle(Arrived(a_request(f"bulk{i}", of="bulk")), now=100.0)
    dispatcher.handle(Arrived(a_request("standard")), now=100.0)
    dispatcher.handle(Arrived(a_request("critical", of="critical")), now=100.0)
    place = {name: dispatcher.outlook(name, now=100.0) for name in ("critical", "standard", "bulk0")}
    assert {name: outlook.before for name, outlook in place.items()} == {
        "critical": 0, "standard": 7, "bulk0": 8,
    }  # fmt: skip
    assert place["critical"].mean == 0.5
    assert place["standard"].mean == 4.0
    assert dispatcher.outlook("nobody", now=100.0) is None


def test_the_predicted_wait_counts_one_round_of_the_tenants_and_not_the_long_line_of_another():
    dispatcher = a_busy_dispatcher(waiting=0)
    for i in range(100):
        dispatcher.handle(Arrived(a_request(f"a{i}", tenant="a")), now=100.0)
    assert dispatcher.handle(Arrived(a_request("b", tenant="b", deadline=102.0)), now=100.0) == []
    assert dispatcher.outlook("b", now=100.0).before <= 1
    assert the_drop(dispatcher.handle(Arrived(a_request("c", tenant="a", deadline=102.0)), now=100.0))


def test_urgent_requests_yet_to_come_lengthen_the_wait_of_the_others():
    classes = (PriorityClass("urgent", 1), PriorityClass("low", 2))
    dispatcher = Dispatcher(QueueOptions(classes=classes))
    dispatcher.handle(ReplicaReady("r", 1), now=0.0)
    [send] = dispatcher.handle(Arrived(a_request("learn", of="urgent")), now=0.0)
    dispatcher.handle(SlotFreed(send.lease), now=1.0)
    dispatcher.handle(Arrived(a_request("runs", of="urgent")), now=1.0)
    for i in range(10):  # half of what the slot can serve
        now = 2.0 + 2 * i
        dispatcher.handle(Arrived(a_request(f"u{i}", of="urgent")), now)
    dispatcher.handle(Arrived(a_request("low", of="low")), now=22.0)
    assert dispatcher.outlook("low", now=22.0).mean == pytest.approx(11 / (1 - 0.5), rel=0.15)


def test_predicted_and_measured_waits_agree_under_load():
    # M/M/8 at load 0.95 for 2000 s: those who wait, by the wait they were predicted. The model is exact in
    # the mean; what is left is the learned E[S], whose mean of 50 strays by 14 %.
    seen = overload(0.95, patience=1e6, overloaded=2000.0)
    both = [(seen.predicted[name], seen.waited[name]) for name in seen.predicted if name in seen.waited]
    assert len(both) > 5000
    predicted, waited = np.array(both).T
    assert waited.mean() == pytest.approx(predicted.mean(), rel=0.05)
    longer = predicted > np.median(predicted)
    assert waited[longer].mean() == pytest.approx(predicted[longer].mean(), rel=0.1)


# -- Retry-After


@pytest.mark.parametrize("load", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("patience", [1.0, 5.0, 30.0])
def test_more_than_half_of_those_who_come_back_when_told_start_in_time(load, patience):
    seen = overload(load, patience=patience, overloaded=300.0)
    assert seen.back.total() > 50
    assert seen.back_in_time > 0.5
    assert max(seen.told) < 2 * load * 300  # and nobody is sent away for good


def test_also_when_they_come_back_until_they_are_served_and_when_the_bound_is_in_requests():
    assert overload(1.5, comes_back=100).back_in_time > 0.5
    assert overload(1.5, queue=QueueOptions(requests_max=5)).back_in_time > 0.5


def test_early_refusal_leaves_few_to_expire_and_no_slot_idle():
    early = overload(1.5, comes_back=0)
    never = overload(1.5, comes_back=0, queue=QueueOptions(refuse_late=False))
    expired, expired_never = (run.first[DropReason.DEADLINE_PASSED] for run in (early, never))
    assert expired < expired_never / 4
    assert early.first["started"] > 0.97 * never.first["started"]


def test_every_refused_client_is_told_a_later_moment():
    dispatcher = a_busy_dispatcher(waiting=7)
    told = []
    for i in range(5):
        late = a_request(f"late{i}", arrived_at=100.0, deadline=103.0)
        [drop] = dispatcher.handle(Arrived(late), now=100.0)
        assert isinstance(drop, Drop)
        told.append(drop.retry_after)
    assert told == sorted(set(told))


def test_nobody_can_tell_when_no_service_was_seen_and_nobody_need_when_closing():
    dispatcher = Dispatcher(QueueOptions(requests_max=0))
    dispatcher.handle(ReplicaReady("r", 1), now=0.0)
    dispatcher.handle(Arrived(a_request("runs")), now=0.0)
    assert the_drop(dispatcher.handle(Arrived(a_request("a")), now=0.0)).retry_after is None
    dispatcher.handle(Closing(), now=0.0)
    assert the_drop(dispatcher.handle(Arrived(a_request("b")), now=0.0)).retry_after is None


def test_the_moments_are_spaced_by_what_is_left_of_the_capacity():
    comebacks = Comebacks()
    assert comebacks.tell(10.0, excess=3.0, capacity=2.0, arrival_rate=2.0) == 3.0
    assert comebacks.tell(10.0, excess=0.0, capacity=2.0, arrival_rate=2.0) == pytest.approx(3.0 + 1 / 1.6)
    assert comebacks.tell(10.0, excess=0.0, capacity=2.0, arrival_rate=9.0) == pytest.approx(3.625 + 1 / 0.8)
    for _ in range(3):
        assert comebacks.tell(10.0, excess=1e9, capacity=2.0, arrival_rate=2.0) == RETRY_AFTER_MAX


def test_the_rate_at_the_door_is_of_the_last_windows():
    rate = DoorRate()
    rate.begin(100.0)
    assert rate.total(100.0) == 0.0
    for i in range(1000):
        rate.arrived("standard" if i % 4 else "bulk", 100.0 + i * 0.1)
    assert rate.total(200.0) == pytest.approx(10.0, rel=0.02)
    assert rate.of("bulk", 200.0) == pytest.approx(2.5, rel=0.02)
    for i in range(100):
        rate.arrived("standard", 200.0 + i)
    assert rate.total(300.0) == pytest.approx(1.0, rel=0.02)
    assert 300.0 - rate._since_before <= 2 * WINDOW + 1
