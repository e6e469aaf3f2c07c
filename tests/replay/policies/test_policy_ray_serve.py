"""Ray Serve: the error ratio and its gain, and a delay that takes the last count."""

import pytest

from autoscaler.replay.policies.ray_serve import Delay, RayServePolicy, desired_replicas
from tests.fakes.seen_by_peers import a_fleet, answers, seen


@pytest.mark.parametrize("gain, replicas", [(1.0, 4), (0.5, 3)])
def test_the_gain_moves_a_share_of_the_way(gain, replicas):
    """Target 2, two replicas, 7 ongoing: 3.5 / 2 = 1.75; halved, 1.375."""
    assert desired_replicas(7, 2, 2, upscaling=gain) == replicas


def test_a_gain_down_that_would_get_stuck_takes_one():
    assert desired_replicas(9, 1, 10, downscaling=0.5) == 9  # 10 * 0.95 = 9.5 would stay 10


def test_the_last_of_the_agreeing_counts_is_taken():
    delay = Delay(up_periods=5, down_periods=60)
    assert [delay.decided(desired, 2) for desired in (10, 10, 15, 10, 10, 5)] == [2, 2, 2, 2, 2, 5]


def test_a_change_of_mind_starts_the_delay_anew():
    delay = Delay(up_periods=1, down_periods=1)
    assert [delay.decided(desired, 5) for desired in (6, 4, 6, 5, 6, 7)] == [5, 5, 5, 5, 5, 7]


def test_more_load_is_followed_after_30_s_and_less_after_600():
    policy = RayServePolicy(0.5)
    counts = answers(policy, lambda now: seen(10.0, busy=2.0 if now <= 300 else 1.0), until=1200.0, ready=2)
    up, down = counts.index(4), counts.index(2, counts.index(4))
    assert up * 10.0 == 30.0  # asked for at 10 s, and for 30 s since
    assert 900.0 <= (down + 1) * 10.0 <= 940.0
    assert counts[-1] == 2


def test_its_target_is_per_slot():
    policy = RayServePolicy(0.5)
    fleet = a_fleet(1, slots=8)
    assert [policy.decide(seen(10.0, busy=8, waiting=4), fleet, now) for now in (10.0, 20.0, 30.0, 40.0)] == [
        1,
        1,
        1,
        3,
    ]
