"""An urgent request takes the slot of one that can do without its answer so far."""

from autoscaler.dispatch import Dispatcher, PriorityClass, QueueOptions
from autoscaler.dispatch.actions import Preempt, Send
from autoscaler.dispatch.events import (
    Arrived,
    AwaitsFirstByte,
    CallEnd,
    FirstByte,
    ReplicaReady,
    Returned,
    SlotFreed,
)
from tests.dispatch.queues import a_request, sent

CLASSES = (
    PriorityClass("urgent", 1, preempts=True),
    PriorityClass("normal", 2),
    PriorityClass("low", 3, preemptible=True, starvation_bound=60.0),
    PriorityClass("lowest", 4, preemptible=True),
)


def a_dispatcher(slots: int) -> Dispatcher:
    dispatcher = Dispatcher(QueueOptions(classes=CLASSES))
    dispatcher.handle(ReplicaReady("r", slots), now=0.0)
    return dispatcher


def running(dispatcher: Dispatcher, *names: str, now: float = 0.0) -> dict[str, Send]:
    """Requests of the class that each name begins with, sent, and all before their first byte."""
    sends = {}
    for name in names:
        request = a_request(name, of=name.split("-")[0], arrived_at=now)
        [sends[name]] = dispatcher.handle(Arrived(request), now)
        assert dispatcher.handle(AwaitsFirstByte(sends[name].lease), now) == []
    return sends


def urgent(dispatcher: Dispatcher, name: str = "urgent", now: float = 1.0) -> list[object]:
    return list(dispatcher.handle(Arrived(a_request(name, of="urgent", arrived_at=now)), now))


def test_the_least_urgent_that_was_sent_last_gives_its_slot_and_waits_first_in_its_class():
    dispatcher = a_dispatcher(4)
    sends = running(dispatcher, "lowest-a", "low-a", "lowest-b", "low-b")
    dispatcher.handle(Arrived(a_request("lowest-c", of="lowest")), now=0.5)
    lease = sends["lowest-b"].lease
    assert urgent(dispatcher) == [Preempt(lease)]
    assert dispatcher.running == 4  # the slot is taken until the call is over
    back = Returned(lease, sends["lowest-b"].request)
    assert sent(dispatcher.handle(back, now=1.1)) == ["urgent"]
    assert sent(dispatcher.handle(SlotFreed(sends["low-a"].lease), now=2.0)) == ["lowest-b"]
    assert dispatcher.running == 4


def test_each_who_waits_takes_one_slot_at_most():
    dispatcher = a_dispatcher(3)
    running(dispatcher, "low-a", "low-b", "low-c")
    assert len(urgent(dispatcher, "urgent-1")) == 1
    assert len(urgent(dispatcher, "urgent-2")) == 1
    assert dispatcher.handle(Arrived(a_request("normal", of="normal")), now=1.0) == []


def test_whose_answer_has_begun_keeps_its_slot_even_when_it_was_named():
    dispatcher = a_dispatcher(1)
    [send] = running(dispatcher, "low-a").values()
    dispatcher.handle(FirstByte(send.lease), now=0.5)
    assert urgent(dispatcher) == []

    dispatcher = a_dispatcher(2)
    sends = running(dispatcher, "low-a", "low-b")
    [preempt] = urgent(dispatcher)
    assert preempt == Preempt(sends["low-b"].lease)
    # Too late, it answers: another is asked instead.
    assert dispatcher.handle(FirstByte(sends["low-b"].lease), now=1.0) == [Preempt(sends["low-a"].lease)]


def test_nobody_is_preempted_who_is_not_less_urgent_or_said_to_be_preemptible():
    dispatcher = a_dispatcher(2)
    running(dispatcher, "normal-a", "urgent-a")
    assert urgent(dispatcher) == []


def test_nobody_is_preempted_twice_or_when_overdue():
    dispatcher = a_dispatcher(1)
    [send] = running(dispatcher, "low-a").values()
    assert urgent(dispatcher, "urgent-1") == [Preempt(send.lease)]
    [first] = dispatcher.handle(Returned(send.lease, send.request), now=1.0)
    [again] = dispatcher.handle(SlotFreed(first.lease), now=2.0)
    assert again.request.id == "low-a"
    dispatcher.handle(AwaitsFirstByte(again.lease), now=2.0)
    assert urgent(dispatcher, "urgent-2", now=2.0) == []

    dispatcher = a_dispatcher(1)
    running(dispatcher, "low-a")
    assert urgent(dispatcher, now=60.0) == []


def test_a_preempted_one_costs_no_retry():
    dispatcher = a_dispatcher(1)
    for i in range(200):  # more than the burst of the budget
        [send] = running(dispatcher, f"low-{i}").values()
        assert urgent(dispatcher, f"urgent-{i}", now=0.0) == [Preempt(send.lease)]
        [first] = dispatcher.handle(Returned(send.lease, send.request), now=0.0)
        [again] = dispatcher.handle(SlotFreed(first.lease), now=0.0)
        dispatcher.handle(SlotFreed(again.lease, CallEnd.INCONCLUSIVE), now=0.0)
    assert dispatcher.running == 0


def test_without_a_class_that_preempts_the_driver_may_report_first_bytes_all_the_same():
    dispatcher = Dispatcher(QueueOptions())
    dispatcher.handle(ReplicaReady("r", 1), now=0.0)
    [send] = dispatcher.handle(Arrived(a_request("a", of="deferrable")), now=0.0)
    dispatcher.handle(AwaitsFirstByte(send.lease), now=0.0)
    assert dispatcher.handle(Arrived(a_request("b", of="critical")), now=0.0) == []
    assert dispatcher.handle(FirstByte(send.lease), now=0.0) == []
