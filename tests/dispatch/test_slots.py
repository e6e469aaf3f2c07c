"""The ledger of slots on its own: who is picked, and what is counted."""

import pytest

from autoscaler.dispatch.slots import Lease, ReplicaLoad, ReplicaState, Slots
from autoscaler.domain import Request


def take(slots: Slots, name: str) -> Lease:
    lease = slots.take(Request(name, arrived_at=0.0, deadline=1.0))
    assert lease is not None
    return lease


def a_ledger(**replicas: int) -> Slots:
    slots = Slots()
    for replica_id, count in replicas.items():
        slots.ready(replica_id, count)
    return slots


def test_the_least_loaded_by_fraction_is_picked():
    slots = a_ledger(small=2, large=6)
    picks = [take(slots, f"q{i}").replica_id for i in range(8)]
    # 0/2 and 0/6: the older; then the lower fraction; 1/2 and 3/6: the fewer requests.
    assert picks == ["small", "large", "large", "large", "small", "large", "large", "large"]
    assert slots.take(Request("one more", 0.0, 1.0)) is None


def test_among_equally_loaded_ones_the_longest_idle_is_picked():
    slots = a_ledger(a=1, b=1, c=1)
    leases = {lease.replica_id: lease for lease in (take(slots, name) for name in "xyz")}
    for replica_id in ("b", "c", "a"):
        assert slots.free(leases[replica_id])
    assert [take(slots, name).replica_id for name in "xyz"] == ["b", "c", "a"]


def test_no_replica_is_passed_over_after_scale_events():
    # K3: replicas come and go; the next five requests still reach all five.
    slots = a_ledger(a=4, b=4)
    for name in "uvwx":
        slots.free(take(slots, name))
    slots.drain("a")
    for replica_id in ("c", "d", "e"):
        slots.ready(replica_id, 4)
    slots.ready("a", 4)
    assert {take(slots, f"q{i}").replica_id for i in range(5)} == {"a", "b", "c", "d", "e"}


def test_slots_of_a_known_replica_may_rise():
    slots = a_ledger(a=1)
    take(slots, "x")
    slots.ready("a", 2)
    assert (slots.slots_ready, slots.slots_free) == (2, 1)
    assert take(slots, "y").replica_id == "a"
    assert not slots.slots_free


def test_slots_of_a_known_replica_may_fall_below_what_runs_on_it():
    slots = a_ledger(a=3)
    leases = [take(slots, name) for name in "xyz"]
    slots.ready("a", 1)
    assert slots.replicas == (ReplicaLoad("a", ReplicaState.READY, slots=1, busy=3),)
    assert (slots.slots_ready, slots.slots_free) == (1, 0)
    for lease in leases[:2]:
        slots.free(lease)
        assert not slots.slots_free
    slots.free(leases[2])
    assert slots.slots_free == 1


def test_a_draining_replica_gets_nothing_and_can_be_taken_back():
    slots = a_ledger(a=2)
    take(slots, "x")
    slots.drain("a")
    assert slots.take(Request("y", 0.0, 1.0)) is None
    assert slots.busy_by_replica() == {"a": 1}
    slots.ready("a", 2)
    assert take(slots, "y").replica_id == "a"
    assert slots.take(Request("z", 0.0, 1.0)) is None


def test_a_draining_replica_stays_known_when_empty_and_a_lost_one_does_not():
    slots = a_ledger(a=1, b=1)
    slots.drain("a")
    slots.lose("b")
    assert slots.replicas == (ReplicaLoad("a", ReplicaState.DRAINING, slots=1, busy=0),)
    slots.lose("a")
    assert slots.replicas == ()


def test_a_lost_replica_does_not_come_back_by_draining():
    slots = a_ledger(a=1)
    lease = take(slots, "x")
    slots.lose("a")
    slots.drain("a")
    assert slots.free(lease)
    assert slots.replicas == ()


def test_what_is_told_of_an_unknown_replica_changes_nothing():
    slots = a_ledger()
    slots.drain("nobody")
    slots.lose("nobody")
    assert slots.replicas == ()


@pytest.mark.parametrize("forged", [Lease(7, "a", "x"), Lease(1, "b", "x"), Lease(1, "a", "y")])
def test_only_a_live_lease_frees_a_slot(forged):
    slots = a_ledger(a=1, b=1)
    lease = take(slots, "x")
    assert lease == Lease(1, "a", "x")
    assert not slots.free(forged)
    assert (slots.running, slots.frees_refused) == (1, 1)
    assert slots.free(lease)
    assert not slots.free(lease)
    assert (slots.running, slots.frees_refused) == (0, 2)


def test_an_old_lease_does_not_free_the_new_one_of_the_same_request():
    slots = a_ledger(a=1)
    old = take(slots, "x")
    slots.free(old)
    new = take(slots, "x")
    assert not slots.free(old)
    assert slots.live_leases() == (new,)


def test_a_request_holds_one_slot_at_a_time():
    slots = a_ledger(a=2)
    take(slots, "x")
    with pytest.raises(ValueError, match="'x' holds a slot already"):
        take(slots, "x")


def test_a_replica_with_fewer_than_no_slots_is_refused():
    with pytest.raises(ValueError, match="need slots >= 0, got -1 for replica 'a'"):
        Slots().ready("a", -1)


def test_a_replica_whose_slots_are_all_others_is_ready_and_takes_nothing():
    slots = a_ledger(a=2)
    lease = take(slots, "x")
    slots.ready("a", 0)
    assert (slots.slots_free, slots.slots_ready, slots.busy_by_replica()) == (0, 0, {"a": 1})
    assert slots.take(Request("y", 0.0, 1.0)) is None
    slots.free(lease)
    assert slots.slots_free == 0
    slots.ready("a", 1)
    assert slots.slots_free == 1


def test_dead_offers_stay_bounded_over_a_long_life():
    # The load of b goes up and down beneath an offer of a that stays on top, so nothing dead is ever skipped.
    slots = a_ledger(a=1, b=10)
    slots.drain("a")
    leases = [take(slots, f"q{i}") for i in range(9)]
    slots.ready("a", 1)
    for _ in range(2000):
        slots.free(leases.pop())
        slots.drain("a")
        leases.append(take(slots, "again"))
        slots.ready("a", 1)
    assert len(slots._offers) <= 2 * len(slots.replicas) + 64


def test_the_repr_is_a_small_dashboard():
    slots = a_ledger(a=2, b=1)
    take(slots, "x")
    assert repr(slots) == "<Slots busy=1/3 running=1 replicas=2>"
