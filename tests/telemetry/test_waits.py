"""What was really waited, beside what was promised."""

import math

import pytest

from autoscaler.domain import DropReason, Objective, Outcome, Request
from autoscaler.telemetry.waits import WaitsWindow

OBJECTIVE = Objective(wait_seconds=1.0)


def waited(window, wait, *, at):
    window.started(Request("r", arrived_at=at - wait, deadline=at + 1), at)


def dropped(window, reason, *, at):
    window.ended(Request("r", arrived_at=at, deadline=at), Outcome.EXPIRED, at, reason)


def test_percentiles_are_waits_that_happened():
    window = WaitsWindow()
    for hundredths in range(1, 101):
        waited(window, hundredths / 50, at=10.0)
    summary = window.summary(OBJECTIVE, now=11.0)
    assert (summary.p50, summary.p95, summary.p99) == pytest.approx((1.0, 1.9, 1.98))
    assert summary.count == 100
    assert summary.met == pytest.approx(0.5, abs=0.011)  # the wait of exactly 1 s may round either way


def test_a_request_that_the_queue_let_go_of_is_a_miss_without_a_wait():
    window = WaitsWindow()
    waited(window, 0.5, at=10.0)
    dropped(window, DropReason.QUEUE_FULL, at=10.0)
    dropped(window, DropReason.DEADLINE_PASSED, at=10.0)
    dropped(window, DropReason.NO_CAPACITY, at=10.0)
    summary = window.summary(OBJECTIVE, now=10.0)
    assert (summary.count, summary.met, summary.p99) == (4, 0.25, 0.5)


def test_one_that_ended_otherwise_is_not_counted_twice():
    window = WaitsWindow()
    waited(window, 0.5, at=10.0)
    window.ended(Request("r", 9.5, 20.0), Outcome.COMPLETED, 11.0)
    window.ended(Request("s", 9.5, 20.0), Outcome.CANCELLED, 11.0)
    dropped(window, DropReason.CLOSING, at=11.0)
    assert window.summary(OBJECTIVE, now=11.0).count == 1


def test_nothing_is_known_of_an_empty_window():
    summary = WaitsWindow().summary(OBJECTIVE, now=1.0)
    assert summary.count == 0
    assert math.isnan(summary.met)
    assert math.isnan(summary.p99)


def test_if_nobody_was_served_all_missed():
    window = WaitsWindow()
    dropped(window, DropReason.NO_CAPACITY, at=1.0)
    summary = window.summary(OBJECTIVE, now=1.0)
    assert (summary.count, summary.met) == (1, 0.0)
    assert math.isnan(summary.p50)


def test_old_waits_are_forgotten():
    window = WaitsWindow(age_max=60.0)
    waited(window, 9.0, at=0.0)
    waited(window, 0.1, at=50.0)
    assert window.summary(OBJECTIVE, now=60.0).count == 2
    assert window.summary(OBJECTIVE, now=61.0).p99 == pytest.approx(0.1)


def test_the_window_is_bounded():
    window = WaitsWindow(count_max=10)
    for second in range(100):
        waited(window, 0.1, at=second)
    assert window.summary(OBJECTIVE, now=100.0).count == 10
