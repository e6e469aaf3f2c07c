"""The HPA: worked decisions, pods without metrics, limits up, the window down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.replay.policies.hpa import Behavior, HpaPolicy, external_replicas, pods_replicas
from tests.fakes.seen_by_peers import a_fleet, answers, seen


@pytest.mark.parametrize("total, replicas", [(41, 10), (45, 12)])
def test_an_external_average_within_a_tenth_of_its_target_changes_nothing(total, replicas):
    """N = 10, target 4: 41 is 1.025 of it; 45 is 1.125, and 45 / 4 = 11.25."""
    assert external_replicas(10, total, 4) == replicas


def test_a_total_that_divides_evenly_is_not_rounded_up():
    assert external_replicas(5, 4.2, 0.7) == 6


@pytest.mark.parametrize("replicas, limit", [(3, 7), (10, 20)])
def test_a_fresh_period_admits_four_pods_or_as_many_again(replicas, limit):
    assert Behavior().allowed(50, replicas, now=100.0) == limit


def test_what_was_added_within_the_period_counts_against_its_limit():
    behavior = Behavior()
    assert behavior.allowed(50, 10, now=0.0) == 20
    assert behavior.allowed(50, 20, now=10.0) == 20
    assert behavior.allowed(50, 20, now=15.0) == 40


def test_going_down_the_highest_recommendation_of_300_s_rules():
    """9, 4, 4, … stays 9 until that 9 is older than 300 s."""
    behavior = Behavior()
    assert behavior.allowed(9, 9, now=0.0) == 9
    assert [behavior.allowed(4, 9, now) for now in (15.0, 150.0, 285.0, 299.0)] == [9, 9, 9, 9]
    assert behavior.allowed(4, 9, now=301.0) == 4


def test_the_count_it_finds_is_its_first_recommendation():
    behavior = Behavior()
    assert [behavior.allowed(4, 9, now) for now in (0.0, 299.0, 301.0)] == [9, 9, 4]


def test_a_recommendation_of_the_window_never_raises_the_count():
    behavior = Behavior()
    behavior.allowed(9, 9, now=0.0)
    assert behavior.allowed(4, 6, now=15.0) == 6


@pytest.mark.parametrize(
    "total, missing, unready, replicas",
    [
        (12.0, 0, 0, 12),
        (10.9, 0, 0, 10),  # within the tolerance
        (5.0, 0, 0, 5),
        (30.0, 0, 5, 30),
        (16.0, 0, 5, 15),  # going up, unready pods use nothing: 16 / 15 is within the tolerance
        (12.0, 0, 5, 15),  # and 12 / 15 would turn the move around
        (12.0, 5, 0, 15),  # so it is with missing ones
        (5.0, 0, 5, 5),  # going down, unready pods do not count
        (4.0, 4, 0, 8),  # and missing ones use their target
        (9.5, 4, 0, 14),
    ],
)
def test_pods_without_a_metric_only_dampen(total, missing, unready, replicas):
    """Ten pods report `total` at a target of 1 each."""
    assert pods_replicas(10 + missing + unready, total, 1.0, 10, missing, unready) == replicas


def test_without_any_metric_nothing_moves():
    assert pods_replicas(3, 0.0, 1.0, reporting=0, unready=3) == 3


@given(
    total=st.floats(0, 1e4),
    reporting=st.integers(1, 200),
    missing=st.integers(0, 50),
    unready=st.integers(0, 50),
)
def test_a_pod_more_without_a_metric_never_turns_a_move_around(total, reporting, missing, unready):
    spec = reporting + missing + unready
    wanted = pods_replicas(spec, total, 1.0, reporting, missing, unready)
    if total > reporting:
        assert wanted >= spec
    elif missing == unready == 0:
        assert wanted <= spec


def test_the_policy_follows_concurrency_per_slot():
    """28 in service and 7 waiting on ten replicas of 4 slots, target 0.70: 35 / 2.8 = 12.5."""
    policy = HpaPolicy(0.7)
    assert policy.decide(seen(busy=28, waiting=7), a_fleet(10, slots=4), 15.0) is None  # not seen yet
    assert policy.decide(seen(busy=28, waiting=7), a_fleet(10, slots=4), 30.0) == 13


def test_load_that_ends_is_followed_down_after_the_mean_and_the_window():
    counts = answers(HpaPolicy(0.5), lambda now: seen(busy=5.0 if now <= 300 else 0.0), until=900.0, ready=10)
    assert counts[: round(600 / 15)] == [10] * 40
    assert counts[-1] == 1
