"""A second copy: for late ones, on idle slots, within the budget."""

import pytest

from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.dispatch.actions import Hedge
from autoscaler.dispatch.events import Arrived, CallEnd, ReplicaReady, SlotFreed, Tick
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.domain import Request


def a_dispatcher(*slots: int, share: float = 1.0) -> Dispatcher:
    """That has seen 20 hedgeable services of 0.05 to 1 s; nothing runs now, at 100 s."""
    dispatcher = Dispatcher(QueueOptions(), DispatchOptions(hedging=HedgeOptions(quantile=0.95, share=share)))
    for i, count in enumerate(slots):
        dispatcher.handle(ReplicaReady(f"r{i}", count), now=0.0)
    for i in range(20):
        [send] = dispatcher.handle(Arrived(a_short_one(f"seen{i}")), now=0.0)
        dispatcher.handle(SlotFreed(send.lease), now=(i + 1) / 20)
    return dispatcher


def a_short_one(name: str, *, hedgeable: bool = True) -> Request:
    return Request(name, 0.0, 1e9, hedgeable=hedgeable)


def test_one_that_takes_longer_than_19_of_20_is_sent_to_another_replica_as_well():
    dispatcher = a_dispatcher(1, 1)
    [send] = dispatcher.handle(Arrived(a_short_one("q")), now=100.0)
    assert dispatcher.next_wakeup() == 100.95
    [hedge] = dispatcher.handle(Tick(), now=100.95)
    assert isinstance(hedge, Hedge)
    assert (hedge.of, hedge.request.id) == (send.lease, "q+hedge")
    assert hedge.lease.replica_id != send.lease.replica_id
    assert (dispatcher.running, dispatcher.slots_free) == (2, 0)
    dispatcher.handle(SlotFreed(hedge.lease), now=101.0)
    dispatcher.handle(SlotFreed(send.lease, CallEnd.INCONCLUSIVE), now=101.0)
    assert (dispatcher.running, dispatcher.slots_free, dispatcher.frees_refused) == (0, 2, 0)


def test_no_copy_of_one_that_is_quick_or_may_not_run_twice():
    dispatcher = a_dispatcher(1, 1)
    [send] = dispatcher.handle(Arrived(a_short_one("quick")), now=100.0)
    dispatcher.handle(SlotFreed(send.lease), now=100.5)
    dispatcher.handle(Arrived(a_short_one("once", hedgeable=False)), now=101.0)
    assert dispatcher.next_wakeup() is None
    assert dispatcher.handle(Tick(), now=200.0) == []


def test_no_copy_on_the_same_replica_and_none_while_no_slot_idles():
    dispatcher = a_dispatcher(4)
    dispatcher.handle(Arrived(a_short_one("q")), now=100.0)
    assert dispatcher.handle(Tick(), now=101.0) == []
    dispatcher = a_dispatcher(1, 1)
    for name in ("q", "other", "waits"):
        dispatcher.handle(Arrived(a_short_one(name)), now=100.0)
    assert dispatcher.handle(Tick(), now=101.0) == []


def test_each_call_has_one_copy_at_most():
    dispatcher = a_dispatcher(1, 9)
    dispatcher.handle(Arrived(a_short_one("q")), now=100.0)
    assert len(dispatcher.handle(Tick(), now=101.0)) == 1
    assert dispatcher.handle(Tick(), now=110.0) == []


def test_when_all_turn_slow_the_budget_holds():
    dispatcher = a_dispatcher(100, 100, share=0.125)
    for i in range(44):  # with the 20 seen before, eight copies' worth
        dispatcher.handle(Arrived(a_short_one(f"q{i}")), now=100.0)
    assert len(dispatcher.handle(Tick(), now=101.0)) == 8


def test_nothing_is_late_before_enough_was_seen():
    dispatcher = Dispatcher(QueueOptions(), DispatchOptions(hedging=HedgeOptions()))
    for i in range(2):
        dispatcher.handle(ReplicaReady(f"r{i}", 1), now=0.0)
    dispatcher.handle(Arrived(a_short_one("q")), now=0.0)
    assert dispatcher.next_wakeup() is None


@pytest.mark.parametrize("wrong", [{"quantile": 1.0}, {"delay_min": -1.0}, {"share": 0.0}])
def test_an_option_that_cannot_be_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HedgeOptions(**wrong)
