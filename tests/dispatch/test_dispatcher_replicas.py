"""Transcripts of replicas that start slowly, are busy, break, and are kept apart."""

from autoscaler.dispatch import Dispatcher, DispatchOptions, QueueOptions
from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.events import (
    Arrived,
    Backpressure,
    CallEnd,
    Probed,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    Returned,
    SlotFreed,
    Tick,
)
from autoscaler.dispatch.health import HealthState
from autoscaler.dispatch.lease import Lease
from autoscaler.dispatch.offering import Offering
from autoscaler.dispatch.retry_budget import RetryBudgetOptions
from autoscaler.domain import DropReason, Request
from tests.dispatch.queues import a_request, sent, the_drop


def a_dispatcher(*slots: int, **options: object) -> Dispatcher:
    """With ready replicas named r0, r1, … of so many slots."""
    dispatcher = Dispatcher(QueueOptions(), DispatchOptions(**options))
    for i, count in enumerate(slots):
        dispatcher.handle(ReplicaReady(f"r{i}", count), now=0.0)
    return dispatcher


def arrive(dispatcher: Dispatcher, *names: str, now: float = 0.0) -> list[Lease]:
    """Let them arrive; return the leases of those that were sent."""
    actions = [a for name in names for a in dispatcher.handle(Arrived(a_request(name, arrived_at=now)), now)]
    return [action.lease for action in actions]


def where(leases: list[Lease]) -> list[str]:
    return [lease.replica_id for lease in leases]


# -- slots that go to other programs, and come back


def with_r0_ejected() -> Dispatcher:
    """With r0 and r1 of two slots each, of which r0 has just broken its third call, at 2.0."""
    dispatcher = a_dispatcher(2, 2)
    for number in range(3):
        leases = arrive(dispatcher, *(f"{number}{name}" for name in "abcd"), now=float(number))
        for lease in leases:
            end = CallEnd.BROKE if lease.replica_id == "r0" else CallEnd.SERVED
            dispatcher.handle(SlotFreed(lease, end), now=float(number))
    return dispatcher


def test_whoever_is_ejected_stays_so_whatever_slots_it_has():
    dispatcher = with_r0_ejected()
    for slots in (1, 0, 2):
        dispatcher.handle(ReplicaReady("r0", slots), now=2.5)
        assert dispatcher.health()["r0"] is HealthState.EJECTED
        assert dispatcher.slots_ready == 2


def test_whoever_is_spared_stays_so_if_it_has_other_slots():
    dispatcher = a_dispatcher(2)
    (lease,) = arrive(dispatcher, "a")
    dispatcher.handle(SlotFreed(lease, CallEnd.REFUSED), now=0.0)
    dispatcher.handle(ReplicaReady("r0", 1), now=0.5)
    assert dispatcher.slots_ready == 0
    dispatcher.handle(Tick(), now=1.0)
    assert dispatcher.slots_ready == 1


def test_one_on_trial_without_slots_is_offered_none():
    dispatcher = with_r0_ejected()
    dispatcher.handle(ReplicaReady("r0", 0), now=5.0)
    dispatcher.handle(Tick(), now=30.0)
    assert dispatcher.health()["r0"] is HealthState.ON_TRIAL
    assert dispatcher.slots_ready == 2
    dispatcher.handle(ReplicaReady("r0", 2), now=31.0)
    assert dispatcher.slots_ready == 3


def test_other_slots_of_many_that_start_slowly_are_not_each_weighed_against_all(monkeypatch):
    dispatcher = a_dispatcher(*[4] * 50, concurrency=ConcurrencyOptions(slow_start=60.0))
    looks, changes = [], Offering.changes
    monkeypatch.setattr(Offering, "changes", lambda self, now: looks.append(now) or changes(self, now))
    for number in range(50):
        dispatcher.handle(ReplicaReady(f"r{number}", 8), now=1.0)
    assert not looks
    assert dispatcher.slots_ready == 50
    dispatcher.handle(Tick(), now=dispatcher.next_wakeup())
    assert dispatcher.next_wakeup() <= 15.0
    dispatcher.handle(Tick(), now=15.0)
    assert dispatcher.slots_ready == 100


# -- slow start


def test_a_new_replica_counts_as_capacity_only_as_it_is_offered():
    dispatcher = a_dispatcher(4, concurrency=ConcurrencyOptions(slow_start=40.0))
    assert len(arrive(dispatcher, "a", "b", "c")) == 1
    assert (dispatcher.slots_ready, dispatcher.next_wakeup()) == (1, 10.0)
    assert sent(dispatcher.handle(Tick(), now=20.0)) == ["b"]
    assert sent(dispatcher.handle(Tick(), now=30.0)) == ["c"]
    assert dispatcher.slots_ready == 3


def test_taken_back_from_draining_it_is_warm_and_back_from_loss_it_is_not():
    dispatcher = a_dispatcher(4, concurrency=ConcurrencyOptions(slow_start=40.0))
    dispatcher.handle(Tick(), now=40.0)
    dispatcher.handle(ReplicaDraining("r0"), now=41.0)
    dispatcher.handle(ReplicaReady("r0", 4), now=42.0)
    assert dispatcher.slots_ready == 4
    dispatcher.handle(ReplicaLost("r0"), now=43.0)
    dispatcher.handle(ReplicaReady("r0", 4), now=44.0)
    assert dispatcher.slots_ready == 1


def test_k5_out_of_zero_the_first_replica_is_not_met_by_all_who_wait():
    dispatcher = a_dispatcher(concurrency=ConcurrencyOptions(slow_start=10.0))
    arrive(dispatcher, *(f"q{i}" for i in range(100)))
    assert len(dispatcher.handle(ReplicaReady("r0", 32), now=60.0)) == 1


# -- backpressure


def test_s2_a_busy_replica_keeps_fewer_slots_and_is_not_ejected():
    dispatcher = a_dispatcher(4)
    leases = arrive(dispatcher, "a", "b", "c", "d")
    for lease in leases:
        dispatcher.handle(Backpressure("r0", retry_after=1.0), now=1.0)
        dispatcher.handle(SlotFreed(lease, CallEnd.INCONCLUSIVE), now=1.0)
    assert dispatcher.slots_ready == 2  # the only one is not left alone altogether
    assert dispatcher.health() == {"r0": HealthState.WELL}
    for now in (12.0, 22.0):
        dispatcher.handle(Tick(), now)
    assert dispatcher.slots_ready == 4


def test_s2_the_last_replica_of_one_slot_serves_through_ten_refusals():
    dispatcher = a_dispatcher(1)
    for i in range(10):
        [lease] = arrive(dispatcher, f"q{i}", now=float(i))
        dispatcher.handle(Backpressure("r0", retry_after=1.0), now=i + 0.5)
        dispatcher.handle(SlotFreed(lease, CallEnd.INCONCLUSIVE), now=i + 0.5)
    assert dispatcher.slots_free == 1


def test_while_another_is_offered_a_busy_one_is_left_alone_as_long_as_it_said():
    dispatcher = a_dispatcher(2, 2)
    dispatcher.handle(Backpressure("r0", retry_after=30.0), now=0.0)
    assert where(arrive(dispatcher, "a", "b", "c")) == ["r1", "r1"]
    assert dispatcher.next_wakeup() == 30.0
    dispatcher.handle(ReplicaLost("r1"), now=10.0)
    assert dispatcher.running == 3  # c went to the busy one, for there is no other
    assert dispatcher.busy_by_replica() == {"r0": 1, "r1": 2}


def test_when_all_are_busy_all_are_offered_what_they_have_left():
    dispatcher = a_dispatcher(4, 4)
    dispatcher.handle(Backpressure("r0", retry_after=30.0), now=0.0)
    dispatcher.handle(Backpressure("r1", retry_after=30.0), now=0.0)
    assert dispatcher.slots_ready == 4


# -- health


def test_l4_a_dead_replica_is_ejected_and_tried_again_by_one_request():
    dispatcher = a_dispatcher(4, 4)
    for i in range(6):
        [lease] = arrive(dispatcher, f"q{i}", now=2.0 * i)
        end = CallEnd.REFUSED if lease.replica_id == "r0" else CallEnd.SERVED
        dispatcher.handle(SlotFreed(lease, end), now=2.0 * i)
    ejected_at = 8.0
    assert dispatcher.health() == {"r0": HealthState.EJECTED, "r1": HealthState.WELL}
    assert dispatcher.slots_ready == 4
    dispatcher.handle(Tick(), now=ejected_at + 10.0)
    assert dispatcher.slots_ready == 5
    leases = arrive(dispatcher, "x", "y", "z", now=18.0)
    assert where(leases) == ["r0", "r1", "r1"]
    dispatcher.handle(SlotFreed(leases[0]), now=19.0)
    assert (dispatcher.health()["r0"], dispatcher.slots_ready) == (HealthState.WELL, 8)


def test_the_only_replica_is_never_ejected_and_spared_for_a_moment():
    dispatcher = a_dispatcher(1)
    for i in range(5):
        [lease] = arrive(dispatcher, f"q{i}", now=10.0 * i)
        dispatcher.handle(SlotFreed(lease, CallEnd.BROKE), now=10.0 * i)
        assert arrive(dispatcher, f"w{i}", now=10.0 * i) == []
        [send] = dispatcher.handle(Tick(), now=10.0 * i + 0.25)
        dispatcher.handle(SlotFreed(send.lease, CallEnd.INCONCLUSIVE), now=10.0 * i + 1)
    assert dispatcher.health() == {"r0": HealthState.WELL}


def test_a_replica_whose_probes_fail_gets_nothing_and_what_runs_there_goes_on():
    dispatcher = a_dispatcher(1, 1)
    leases = arrive(dispatcher, "a", "b")
    for _ in range(3):
        dispatcher.handle(Probed("r0", ok=False), now=1.0)
    assert (dispatcher.running, dispatcher.slots_ready) == (2, 1)
    dispatcher.handle(SlotFreed(leases[0]), now=2.0)
    dispatcher.handle(SlotFreed(leases[1]), now=2.0)
    assert where(arrive(dispatcher, "c", "d", now=3.0)) == ["r1"]


def test_of_one_unknown_or_gone_nothing_is_believed():
    dispatcher = a_dispatcher(1)
    dispatcher.handle(Probed("nobody", ok=False), now=0.0)
    dispatcher.handle(Backpressure("nobody", retry_after=9.0), now=0.0)
    assert dispatcher.slots_ready == 1
    assert dispatcher.health() == {"r0": HealthState.WELL}


# -- retries


def test_s15_a_retry_goes_to_no_replica_that_was_tried():
    dispatcher = a_dispatcher(9, 1, affinity=AffinityOptions())
    [blocker] = [lease for lease in arrive(dispatcher, "a", "b") if lease.replica_id == "r1"]
    request = Request("q", 0.0, 100.0, affinity_key="session")
    [send] = dispatcher.handle(Arrived(request), now=0.0)
    assert send.lease.replica_id == "r0"
    back = Returned(send.lease, send.request, CallEnd.INCONCLUSIVE, exclude=True)
    assert dispatcher.handle(back, now=1.0) == []  # it waits for r1 although r0 has free slots
    assert where(arrive(dispatcher, "other", now=1.0)) == ["r0"]  # which are for others
    [again] = dispatcher.handle(SlotFreed(blocker), now=2.0)
    assert (again.request.id, again.lease.replica_id) == ("q", "r1")
    assert again.request.tried == {"r0"}


def test_who_has_tried_them_all_may_try_any_again():
    dispatcher = a_dispatcher(1)
    [send] = dispatcher.handle(Arrived(a_request("q")), now=0.0)
    [again] = dispatcher.handle(Returned(send.lease, send.request, exclude=True), now=1.0)
    assert again.lease.replica_id == "r0"


def test_a_retry_without_blame_may_go_to_the_same_replica():
    dispatcher = a_dispatcher(1)
    [send] = dispatcher.handle(Arrived(a_request("q")), now=0.0)
    [again] = dispatcher.handle(Returned(send.lease, send.request), now=1.0)
    assert again.request is send.request


def test_when_the_budget_is_spent_nothing_is_tried_again():
    dispatcher = a_dispatcher(1, retries=RetryBudgetOptions(share=0.0, rate=0.0, burst=1.0))
    [send] = dispatcher.handle(Arrived(a_request("q")), now=0.0)
    [again] = dispatcher.handle(Returned(send.lease, send.request), now=0.0)
    drop = the_drop(dispatcher.handle(Returned(again.lease, again.request), now=0.0))
    assert drop.reason is DropReason.RETRIES_SPENT
    assert (dispatcher.running, dispatcher.waiting, dispatcher.slots_free) == (0, 0, 1)


# -- affinity


def test_requests_of_one_session_stay_together_and_yield_to_load():
    dispatcher = a_dispatcher(4, 4, 4, affinity=AffinityOptions(load_bound=2.0))
    homes = set()
    for i in range(20):
        [send] = dispatcher.handle(Arrived(Request(f"q{i}", 0.0, 9.0, affinity_key="one")), now=0.0)
        homes.add(send.lease.replica_id)
        dispatcher.handle(SlotFreed(send.lease), now=0.0)
    [home] = homes
    together = [
        send.lease.replica_id
        for i in range(12)
        for send in dispatcher.handle(Arrived(Request(f"w{i}", 0.0, 9.0, affinity_key="one")), now=0.0)
    ]
    assert len(together) == 12  # nobody waits for the sake of affinity
    assert together.count(home) == 4
