"""Strict classes, and the three things that bend them: floors, ceilings, and the right of the overdue."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass, check_classes
from tests.dispatch.queues import a_request, pop, pop_all

URGENT = PriorityClass("urgent", 1)
NORMAL = PriorityClass("normal", 2, starvation_bound=10.0)
LOW = PriorityClass("low", 3, starvation_bound=30.0)


def a_queue(*classes: PriorityClass, every: int = 4) -> CentralQueue:
    return CentralQueue(classes or (LOW, URGENT, NORMAL), starvation_every=every)


def push(queue: CentralQueue, of: str, count: int, now: float = 0.0) -> None:
    for i in range(count):
        queue.push(a_request(f"{of}@{now:g}.{i}", of=of), now)


def test_the_most_urgent_class_goes_first_whoever_came_first():
    queue = a_queue()
    for name in ("low", "normal", "urgent"):
        push(queue, name, 2)
    assert pop_all(queue) == [
        "urgent@0.0", "urgent@0.1", "normal@0.0", "normal@0.1", "low@0.0", "low@0.1",
    ]  # fmt: skip


def test_e14_who_is_overdue_gets_one_of_n_slots_though_urgent_ones_never_cease():
    queue = a_queue()
    push(queue, "low", 3)
    push(queue, "urgent", 100)
    assert [pop(queue, 29.9) for _ in range(4)] == ["urgent@0.0", "urgent@0.1", "urgent@0.2", "urgent@0.3"]
    order = [pop(queue, 30.0) or "" for _ in range(9)]
    assert [name[:3] for name in order] == ["low", "urg", "urg", "urg", "low", "urg", "urg", "urg", "low"]


def test_a28_when_all_are_overdue_urgent_ones_keep_their_slots_and_no_class_is_rewritten():
    queue = a_queue()
    for name in ("low", "normal", "urgent"):
        push(queue, name, 100)
    order = [(pop(queue, now=1500.0) or "")[:3] for _ in range(100)]  # saturated for 25 minutes
    assert order.count("urg") == 75
    assert order.count("nor") == 25  # overdue since 10 s, before those overdue since 30 s
    assert [line.options.name for line in queue.lines.values() if line.waiting] == ["urgent", "normal", "low"]


def test_a_class_below_its_floor_goes_before_more_urgent_ones():
    queue = a_queue(URGENT, PriorityClass("low", 2, slots_floor=0.25))
    push(queue, "low", 10)
    push(queue, "urgent", 10)
    low = queue.lines["low"]
    low.follow(slots_ready=8)
    order = []
    for _ in range(4):
        order.append((pop(queue) or "")[:3])
        queue.lines["low" if order[-1] == "low" else "urgent"].running += 1
    assert order == ["low", "low", "urg", "urg"]


def test_a_class_at_its_ceiling_waits_although_nobody_else_does():
    queue = a_queue(URGENT, PriorityClass("low", 2, slots_share=0.5))
    push(queue, "low", 3)
    low = queue.lines["low"]
    low.follow(slots_ready=2)
    assert pop(queue) == "low@0.0"
    low.running += 1
    assert pop(queue) is None
    low.follow(slots_ready=1)  # half of one is none, but a class may always hold one
    low.running = 0
    assert pop(queue) == "low@0.1"


def test_a_ceiling_holds_for_the_overdue_too():
    queue = a_queue(URGENT, PriorityClass("low", 2, slots_share=0.5, starvation_bound=1.0))
    push(queue, "low", 3)
    push(queue, "urgent", 3)
    queue.lines["low"].follow(slots_ready=2)
    queue.lines["low"].running = 1
    assert [(pop(queue, now=100.0) or "")[:3] for _ in range(4)] == ["urg", "urg", "urg", ""]


def test_a_tenant_of_hardly_any_weight_is_not_starved_either():
    queue = CentralQueue((PriorityClass("only", 1, starvation_bound=10.0),), 4, {"poor": 1e-9})
    queue.push(a_request("poor", of="only", tenant="poor"), 0.0)
    for i in range(100):
        queue.push(a_request(f"rich{i}", of="only", tenant="rich"), 0.0)
    assert "poor" not in [pop(queue, 9.0) for _ in range(50)]
    assert pop(queue, 10.0) == "poor"


RANK = ["urgent", "normal", "low"]
BOUND = {"urgent": inf, "normal": 10.0, "low": 30.0}


@settings(max_examples=40)
@given(data=st.data(), every=st.integers(1, 6))
def test_the_starvation_contract_holds_under_any_load(data, every):
    """Both sides of it, as `turn.py` states them."""
    queue = a_queue(every=every)
    now, dispatched, serial = 0.0, 0, 0
    waiting: dict[str, tuple[str, float]] = {}
    at_the_latest: dict[str, int] = {}
    before_more_urgent: list[int] = []
    for _ in range(data.draw(st.integers(1, 120))):
        now += data.draw(st.sampled_from([0.0, 0.5, 5.0]))
        for name in data.draw(st.lists(st.sampled_from(["urgent", "urgent", "normal", "low"]), max_size=4)):
            serial += 1
            queue.push(a_request(f"q{serial}", of=name, tenant=f"t{serial % 3}"), now)
            waiting[f"q{serial}"] = (name, now)
        overdue = sorted(
            (since + BOUND[name], RANK.index(name), int(key[1:]), key)
            for key, (name, since) in waiting.items()
            if since + BOUND[name] <= now
        )
        for ahead, (_, _, _, key) in enumerate(overdue):
            at_the_latest.setdefault(key, dispatched + (ahead + 1) * every)
        taken = pop(queue, now)
        if taken is None:
            continue
        dispatched += 1
        rank = RANK.index(waiting.pop(taken)[0])
        if any(RANK.index(name) < rank for name, _ in waiting.values()):
            before_more_urgent.append(dispatched)
        at_the_latest.pop(taken, None)
        assert all(due > dispatched for due in at_the_latest.values()), "overdue longer than was promised"
    assert all(later - earlier >= every for earlier, later in pairwise(before_more_urgent))


def test_the_default_classes_are_four_and_go_together():
    check_classes(DEFAULT_CLASSES)
    assert [each.name for each in DEFAULT_CLASSES] == ["critical", "standard", "bulk", "deferrable"]
    assert [each.priority for each in DEFAULT_CLASSES] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("classes", "complaint"),
    [
        ((), "at least one class"),
        ((URGENT, PriorityClass("urgent", 2)), "a name of its own for each class, got 'urgent' twice"),
        ((URGENT, PriorityClass("other", 1)), "a priority of its own for each class, got 1 twice"),
        (
            (PriorityClass("a", 1, slots_floor=0.6), PriorityClass("b", 2, slots_floor=0.6)),
            "add up to 1 at most, got 1.2",
        ),
    ],
)
def test_classes_that_do_not_go_together_are_named(classes, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_classes(classes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": 0},
        {"slots_share": 1.1},
        {"slots_floor": -0.1},
        {"queue_share": 2.0},
        {"wait_timeout": 0.0},
    ],
)
def test_a_class_that_cannot_be_is_refused_by_the_field(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PriorityClass(**{"name": "x", "priority": 1, **wrong})
