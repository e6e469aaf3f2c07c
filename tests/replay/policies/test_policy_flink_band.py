"""The band: nothing inside of it, its target outside, a window between steps, an hour before a step down."""

from dataclasses import replace

import pytest

from autoscaler.replay.policies.flink_band import FlinkBandPolicy, band_replicas
from tests.fakes.seen_by_peers import answers, seen


@pytest.mark.parametrize(
    "rate, backlog, replicas",
    [
        (10.0, 0.0, 10),  # all are busy all the time: still inside
        (10.5, 0.0, 15),  # 10.5 / 0.7
        (4.1, 0.0, 10),
        (3.9, 0.0, 6),  # 3.9 / 0.7 = 5.6
        (1.0, 0.0, 4),  # no less than 40 % at once
        (9.9, 360.0, 15),  # 9.9 / 0.7 and 0.2 a second to catch up: 14.3
        (1.0, 400.0, 10),  # a backlog of more than 5 minutes: nothing goes
    ],
)
def test_ten_replicas_of_one_a_second(rate, backlog, replicas):
    assert band_replicas(10, rate, 1.0, backlog, target=0.7, boundary=0.3) == replicas


def shown(rate: float):
    """Requests of 10 s each."""
    observation = seen(60.0, arrivals=round(rate * 60), busy=rate * 10)
    return replace(observation, completions=observation.arrivals, service_time_sum=rate * 600)


def test_a_step_up_waits_for_a_whole_window_and_the_next_for_stabilization_and_another():
    counts = answers(FlinkBandPolicy(), lambda now: shown(1.2 if now <= 900 else 2.4), until=2400.0, ready=10)
    first, second = counts.index(18), counts.index(35)  # 12 / 0.7 and 24 / 0.7
    assert (first + 1) * 60.0 == 900.0
    assert (second + 1) * 60.0 == 900.0 + 300.0 + 900.0


def test_a_step_down_takes_an_hour_and_the_greatest_count_of_it():
    def falling(now: float):
        return shown(0.3 if now <= 3600 else 0.2)

    counts = answers(FlinkBandPolicy(), falling, until=6000.0, ready=10)
    down = next(i for i, count in enumerate(counts) if count < 10)
    assert (down + 1) * 60.0 == 900.0 + 3600.0
    assert counts[down] == 5  # 3 / 0.7, rounded up


def test_without_anything_served_it_does_not_move():
    assert set(answers(FlinkBandPolicy(), lambda now: seen(60.0), until=9000.0, ready=3)) == {3}
