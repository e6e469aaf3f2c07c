"""KEDA: the switch at zero, and an HPA above it."""

import pytest

from autoscaler.replay.policies.keda import KedaPolicy, switched
from tests.fakes.seen_by_peers import a_fleet, seen


@pytest.mark.parametrize(
    "replicas, active, idle, minimum, written",
    [
        (5, False, 301.0, 0, 0),  # N = 5, min 0, inactive for 301 s: 0 in one write
        (5, False, 300.0, 0, None),
        (5, False, 301.0, 1, None),
        (0, True, 0.0, 0, 1),
        (0, True, 0.0, 3, 3),
        (5, True, 0.0, 0, None),
        (1, False, 10.0, 2, 2),
    ],
)
def test_the_operator_switches_between_none_and_one(replicas, active, idle, minimum, written):
    assert switched(replicas, active, idle, minimum) == written


def test_after_the_cooldown_it_writes_none_whatever_there_is():
    policy = KedaPolicy(0.2)
    policy.decide(
        seen(busy=1.0), a_fleet(5), 15.0
    )  # seen by the poll of 30 s; that of 330 s is not later by more than 300
    written = {now: policy.decide(seen(), a_fleet(5), now) for now in (15.0 * k for k in range(2, 26))}
    assert next(now for now, replicas in written.items() if replicas == 0) == 360.0


def test_it_looks_for_work_only_every_30_s_while_there_are_no_replicas():
    policy = KedaPolicy.on_queue()
    shown = [(15.0, 0), (30.0, 3), (45.0, 3)]
    assert [policy.decide(seen(waiting=n), a_fleet(0), now) for now, n in shown] == [None, None, 1]


def test_a_queue_is_counted_in_messages_a_replica():
    policy = KedaPolicy.on_queue(5.0)
    assert (
        policy.decide(seen(busy=20, waiting=21), a_fleet(4, slots=8), 15.0) == 8
    )  # 41 / 5, 100 % more at most


def test_concurrency_is_counted_per_slot_and_a_scrape_late():
    policy = KedaPolicy(0.7)
    fleet = a_fleet(10, slots=4)
    assert policy.decide(seen(busy=40, waiting=2), fleet, 15.0) is None
    assert policy.decide(seen(), fleet, 30.0) == 15  # 42 / 2.8
