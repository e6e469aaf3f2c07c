"""SkyServe: counters of agreeing looks."""

from autoscaler.replay.policies.skyserve import RequestRate, SkyServePolicy
from tests.fakes.seen_by_peers import answers, seen


def test_fifteen_agreeing_looks_take_the_count():
    """130 requests in 60 s at 0.5 a second and replica: 4.3, so 5."""
    scaler = RequestRate(0.5, replicas=2)
    assert [scaler.target(130 / 60) for _ in range(15)] == [2] * 14 + [5]


def test_one_look_that_agrees_with_what_there_is_starts_anew():
    scaler = RequestRate(0.5, replicas=2)
    for rate in [130 / 60] * 14 + [1.0]:
        scaler.target(rate)
    assert [scaler.target(130 / 60) for _ in range(15)] == [2] * 14 + [5]


def test_down_takes_sixty():
    scaler = RequestRate(0.5, replicas=5)
    assert [scaler.target(0.9) for _ in range(60)] == [5] * 59 + [2]


def test_the_rate_of_a_replica_follows_from_its_time_of_service():
    """2 a second of 10 s each at 0.70 are 28.6 replicas; asked for at 20 s, taken at 300 s."""
    counts = answers(SkyServePolicy(10.0, 0.7), lambda now: seen(20.0, arrivals=40), until=320.0, ready=20)
    assert counts == [20] * 14 + [29] * 2
