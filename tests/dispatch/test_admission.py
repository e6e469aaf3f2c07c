"""Bounds at the door, and the wait behind those who wait."""

import numpy as np
import pytest

from autoscaler.dispatch.admission import Admission, QueueOptions, wait_behind
from autoscaler.domain import DropReason, Request

OPTIONS = QueueOptions(requests_max=2, bytes_max=100)


@pytest.mark.parametrize(
    ("starts_at_once", "waiting", "waiting_bytes", "refusal"),
    [
        (False, 1, 60, None),
        (False, 2, 0, DropReason.QUEUE_FULL),
        (False, 1, 61, DropReason.QUEUE_BYTES_FULL),
        (False, 2, 61, DropReason.QUEUE_FULL),
        (True, 2, 100, None),
    ],
)
def test_a_request_is_held_to_both_bounds_unless_it_starts_at_once(
    starts_at_once, waiting, waiting_bytes, refusal
):
    request = Request("a", arrived_at=0.0, deadline=1.0, body_bytes=40)
    admission = Admission(OPTIONS)
    found = admission.refusal(
        request, starts_at_once=starts_at_once, waiting=waiting, waiting_bytes=waiting_bytes
    )
    assert found is refusal


def test_nobody_is_let_in_after_closing():
    admission = Admission(OPTIONS)
    admission.close()
    request = Request("a", arrived_at=0.0, deadline=1.0)
    refusal = admission.refusal(request, starts_at_once=True, waiting=0, waiting_bytes=0)
    assert refusal is DropReason.CLOSING


@pytest.mark.parametrize("wrong", [{"requests_max": -1}, {"bytes_max": -1}])
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
