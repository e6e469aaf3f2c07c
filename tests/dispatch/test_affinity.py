"""Keys keep their replica, as far as load lets them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch.affinity import AffinityOptions, preferred
from autoscaler.dispatch.lease import ReplicaLoad, ReplicaState

KEYS = [f"session-{i}" for i in range(2000)]


def loads(*busy: int, slots: int = 100) -> list[ReplicaLoad]:
    return [ReplicaLoad(f"r{i}", ReplicaState.READY, slots, count) for i, count in enumerate(busy)]


def test_a_key_goes_where_it_went_and_keys_spread_evenly():
    replicas = loads(0, 0, 0, 0)
    chosen = [preferred(key, replicas, 1.25) for key in KEYS]
    assert chosen == [preferred(key, list(reversed(replicas)), 1.25) for key in KEYS]
    for count in Counter(chosen).values():
        assert count == pytest.approx(500, abs=100)  # standard deviation: sqrt(2000 * 3/16) = 19


def test_the_choice_is_the_same_in_every_process():
    assert [preferred(key, loads(0, 0, 0, 0), 1.25) for key in KEYS[:8]] == [
        "r2", "r2", "r3", "r3", "r1", "r3", "r2", "r3",
    ]  # fmt: skip


def test_only_the_keys_of_a_lost_replica_move_and_they_move_everywhere():
    before = {key: preferred(key, loads(0, 0, 0, 0), 1.25) for key in KEYS}
    after = {key: preferred(key, loads(0, 0, 0, 0)[:3], 1.25) for key in KEYS}
    moved = [key for key in KEYS if before[key] != after[key]]
    assert {before[key] for key in moved} == {"r3"}
    assert Counter(after[key] for key in moved).keys() == {"r0", "r1", "r2"}


def test_a_popular_key_is_held_to_its_bound():
    busy = [0, 0, 0, 0]
    for _ in range(40):
        chosen = preferred("hot", loads(*busy), 1.25)
        busy[int(str(chosen)[1])] += 1
    assert max(busy) <= 1.25 * 40 / 4 + 1
    assert sum(busy) == 40


def test_the_bound_goes_by_slots():
    replicas = [*loads(0, slots=30), ReplicaLoad("small", ReplicaState.READY, 10, 0)]
    hold = Counter()
    for key in KEYS[:20]:
        now = [ReplicaLoad(r.replica_id, r.state, r.slots, hold[r.replica_id]) for r in replicas]
        hold[preferred(key, now, 1.25)] += 1
    assert hold["small"] <= 1.25 * 20 * 10 / 40 + 1


def test_a_full_replica_is_passed_over_and_nobody_is_left_when_all_are():
    home = preferred("k", loads(0, 0), 1.25)
    full = [ReplicaLoad(r.replica_id, r.state, 1, int(r.replica_id == home)) for r in loads(0, 0)]
    assert preferred("k", full, 2.0) not in (home, None)
    assert preferred("k", loads(1, 1, slots=1), 1.25) is None
    assert preferred("k", [], 1.25) is None


@given(busy=st.lists(st.integers(0, 10), min_size=1, max_size=8), bound=st.floats(1.01, 3.0))
def test_while_any_slot_is_free_somebody_is_within_the_bound(busy, bound):
    # The mean of loads is below the bound, so not all can be above it; those below have a free slot.
    assert (preferred("k", loads(*busy, slots=10), bound) is None) == all(count == 10 for count in busy)


def test_a_bound_below_the_mean_is_refused():
    with pytest.raises(ValueError, match=r"load_bound > 1, got 1\.0"):
        AffinityOptions(load_bound=1.0)
