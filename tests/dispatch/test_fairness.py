"""Deficit round robin among tenants: shares, bounds, and cost in the number of tenants."""

import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.fairness import TenantTurns
from autoscaler.dispatch.place import Place
from autoscaler.domain import Request
from tests.dispatch.queues import a_request, anybody, pop_all


def a_place(tenant: str, serial: int, cost: float = 1.0) -> Place:
    return Place(Request(f"{tenant}{serial}", 0.0, 1.0, tenant=tenant), 0.0, 1.0, cost=cost)


def turns_of(waiting: dict[str, int], weights: dict[str, float] | None = None, **costs: float) -> TenantTurns:
    turns = TenantTurns(weights or {})
    for tenant, count in waiting.items():
        for serial in range(count):
            turns.push(a_place(tenant, serial, costs.get(tenant, 1.0)))
    return turns


def served(turns: TenantTurns, count: int) -> str:
    """Tenants of the next `count` turns."""
    return "".join(turns.pop().request.tenant for _ in range(count))


def test_equal_tenants_alternate_however_many_wait_of_each():
    assert served(turns_of({"a": 1000, "b": 3}), 8) == "abababaa"


def test_a_tenant_that_comes_later_is_not_made_to_wait_for_the_long_line_before_it():
    turns = turns_of({"a": 1000})
    assert served(turns, 500) == "a" * 500
    turns.push(a_place("b", 0))
    assert "b" in served(turns, 2)


def test_first_come_first_served_within_a_tenant():
    turns = turns_of({"a": 3, "b": 3})
    order = [turns.pop().request.id for _ in range(6)]
    assert [name for name in order if name[0] == "a"] == ["a0", "a1", "a2"]
    assert [name for name in order if name[0] == "b"] == ["b0", "b1", "b2"]


def test_turns_go_by_weight():
    assert Counter(served(turns_of({"a": 300, "b": 300}, {"a": 3.0}), 200)) == {"a": 150, "b": 50}


@pytest.mark.parametrize("weight", [1e-3, 1e3])
def test_any_weight_is_served_at_once_and_in_proportion(weight):
    count = Counter(served(turns_of({"a": 3000, "b": 3000}, {"a": weight, "b": 2 * weight}), 3000))
    assert count["b"] == pytest.approx(2 * count["a"], rel=0.01)


def test_who_asks_for_longer_services_gets_fewer_of_them():
    count = Counter(served(turns_of({"long": 300, "short": 300}, long=4.0), 250))
    assert count["short"] == pytest.approx(4 * count["long"], rel=0.05)


def test_a_tenant_pays_for_what_it_was_served_out_of_turn():
    turns = TenantTurns({})
    for serial in range(6):
        for tenant in "ab":
            place = a_place(tenant, serial)
            turns.push(place)
            if tenant == "a" and serial < 2:
                early = place
    turns.remove(early, served=True)
    assert Counter(served(turns, 5)) == {"a": 2, "b": 3}


def test_e12_ten_thousand_tenants_come_and_go_and_only_who_waits_is_looked_at():
    turns = TenantTurns({})
    for serial in range(10_000):
        place = a_place(f"t{serial}", 0)
        turns.push(place)
        turns.remove(place, served=False)
    turns.push(a_place("only", 0))
    assert turns.active == 1
    assert turns.pop().request.id == "only0"
    assert turns.active == 0


def test_how_many_stand_before_one_is_what_then_happens():
    turns = turns_of({"a": 5, "b": 2, "c": 4})
    place = a_place("b", 2)
    turns.push(place)
    before = turns.before(place)
    order = [turns.pop().request.id for _ in range(12)]
    assert abs(order.index("b2") - before) <= 2  # those of its own round may stand on either side


@given(
    weights=st.lists(st.floats(0.1, 10.0), min_size=2, max_size=5),
    costs=st.lists(st.floats(0.05, 8.0), min_size=300, max_size=300),
    rounds=st.integers(1, 200),
)
def test_what_two_that_always_wait_got_differs_by_no_more_than_the_bound(weights, costs, rounds):
    names = "abcde"[: len(weights)]
    turns = TenantTurns(dict(zip(names, weights, strict=True)))
    got = dict.fromkeys(names, 0.0)
    for serial in range(300):
        for index, name in enumerate(names):
            turns.push(a_place(name, serial, costs[(serial * 7 + index * 31) % 300]))
    for _ in range(rounds):
        place = turns.pop()
        got[place.request.tenant] += place.cost
    shares = [got[name] / weight for name, weight in zip(names, weights, strict=True)]
    # A round each, and one request of each: Shreedhar and Varghese, theorem 2, in units of the weights.
    assert max(shares) - min(shares) <= 1 + 2 * max(costs) / min(weights) + 1e-9


def test_e12_ten_thousand_tenants_that_came_and_went_cost_the_next_one_nothing():
    """Counted in calls of functions, which no busy machine can change."""

    def calls_of_one_more(tenants_before: int) -> int:
        queue = CentralQueue()
        for n in range(tenants_before):
            queue.push(a_request(f"q{n}", tenant=f"t{n}"), 0.0)
        pop_all(queue)
        calls = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            queue.push(a_request("last", tenant="last"), 1.0)
            queue.pop(1.0, anybody)
        finally:
            sys.setprofile(None)
        return calls

    assert calls_of_one_more(10_000) == calls_of_one_more(1)
