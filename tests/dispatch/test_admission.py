"""Bounds at the door, and the wait behind those who wait."""

from math import inf

import numpy as np
import pytest

from autoscaler.dispatch import PriorityClass
from autoscaler.dispatch.admission import Admission, QueueOptions, wait_behind
from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.domain import DropReason, Request

URGENT, BULK = PriorityClass("urgent", 1), PriorityClass("bulk", 2, queue_share=0.5)
OPTIONS = QueueOptions(
    requests_max=4, bytes_max=100, service_seconds_max=20.0, classes=(URGENT, BULK), clock_stops_max=0.0
)


def a_queue(**waiting: int) -> CentralQueue:
    """Of so many of each class, of 20 bytes and 4 s each."""
    queue = CentralQueue(OPTIONS.classes)
    for name, count in waiting.items():
        for i in range(count):
            request = Request(f"{name}{i}", 0.0, inf, body_bytes=20, priority_class=name)
            queue.push(request, now=0.0, work=4.0)
    return queue


@pytest.mark.parametrize(
    ("name", "waiting", "body_bytes", "work", "reason"),
    [
        ("urgent", {"urgent": 3}, 40, 4.0, None),
        ("urgent", {"urgent": 4}, 0, 0.1, DropReason.QUEUE_FULL),
        ("urgent", {"urgent": 3}, 41, 4.0, DropReason.QUEUE_BYTES_FULL),
        ("urgent", {"urgent": 3}, 0, 8.1, DropReason.QUEUE_SECONDS_FULL),
        ("bulk", {"urgent": 2, "bulk": 1}, 30, 4.0, None),  # its own share is half of everything
        ("bulk", {"bulk": 2}, 0, 0.1, DropReason.QUEUE_FULL),
        ("bulk", {"bulk": 1}, 31, 0.1, DropReason.QUEUE_BYTES_FULL),
        ("bulk", {"bulk": 1}, 0, 6.1, DropReason.QUEUE_SECONDS_FULL),
        ("urgent", {"bulk": 2}, 60, 12.0, None),  # and the other half is left to the others
    ],
)
def test_each_bound_holds_for_the_queue_and_for_the_share_of_a_class(name, waiting, body_bytes, work, reason):
    request = Request("new", 0.0, inf, body_bytes, priority_class=name)
    assert Admission(OPTIONS).over_bound(request, work, 4.0, a_queue(**waiting)) is reason


@pytest.mark.parametrize(
    "wrong",
    [{"requests_max": -1}, {"bytes_max": -1}, {"service_seconds_max": -1.0}, {"clock_stops_max": -1.0}],
)
def test_a_negative_bound_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=f"need {next(iter(wrong))} >= 0"):
        QueueOptions(**wrong)


def test_the_wait_behind_others_is_the_mean_of_that_many_departures():
    # With exponential services, c busy servers complete as a Poisson process of rate c / E[S]; the arrival
    # starts at its (n + 1)th event. Standard error of the mean: sqrt(8) * 2.5 / sqrt(20000) = 0.05 s.
    gaps = np.random.default_rng(1).exponential(10.0 / 4, size=(20_000, 8))
    assert wait_behind(waiting=7, servers=4, service_time_mean=10.0) == 20.0
    assert gaps.sum(axis=1).mean() == pytest.approx(20.0, abs=0.2)


@pytest.mark.parametrize("waiting, servers, service_time_mean", [(-1, 1, 1.0), (0, 0, 1.0), (0, 1, -1.0)])
def test_an_impossible_queue_has_no_wait(waiting, servers, service_time_mean):
    with pytest.raises(ValueError, match="need waiting >= 0, servers >= 1"):
        wait_behind(waiting, servers, service_time_mean)
