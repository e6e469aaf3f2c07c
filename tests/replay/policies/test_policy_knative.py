"""Knative's KPA: panic, its end, and the rates up and down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.replay.policies.knative import GRACE, KnativePolicy, Scaler
from tests.fakes.seen_by_peers import a_fleet, answers, seen


def test_panic_takes_the_larger_rule_and_does_not_fall_for_a_minute():
    """Concurrency 10, target 7, one pod; 60 over the stable window, 30 over the panic window: 9 pods."""
    scaler = Scaler(ready=1, now=0.0)
    assert scaler.desired(60, 30, target=7, ready=1, now=2.0) == 9
    assert scaler.panicking
    assert [scaler.desired(10, 10, target=7, ready=9, now=now) for now in (4.0, 30.0, 62.0)] == [9, 9, 9]
    assert scaler.desired(10, 10, target=7, ready=9, now=64.0) == 4  # half of nine pods at most
    assert not scaler.panicking


def test_a_step_down_goes_to_half_the_ready_pods_at_most():
    """N = 9, stable value 6: one pod would do; 4."""
    scaler = Scaler(ready=0, now=0.0)
    assert scaler.desired(6, 6, target=7, ready=9, now=2.0) == 4


@pytest.mark.parametrize("panic, panics", [(77.0, False), (77.1, True)])
def test_panic_begins_when_the_short_window_asks_for_twice_the_ready_pods(panic, panics):
    """Six pods: 77 / 7 asks for 11 of them, a little more for 12."""
    scaler = Scaler(ready=0, now=0.0)
    scaler.desired(5, panic, target=7, ready=6, now=2.0)
    assert scaler.panicking == panics


def test_who_finds_pods_begins_in_panic():
    scaler = Scaler(ready=5, now=0.0)
    assert scaler.desired(1, 1, target=1, ready=5, now=2.0) == 5


@given(stable=st.floats(0, 1e4), panic=st.floats(0, 1e4), ready=st.integers(1, 100))
def test_a_step_stays_within_its_rates(stable, panic, ready):
    desired = Scaler(ready=0, now=0.0).desired(stable, panic, target=0.7, ready=ready, now=2.0)
    assert ready // 2 <= desired <= 1000 * ready


def test_the_last_pod_is_kept_for_the_grace():
    policy = KnativePolicy()
    counts = answers(policy, lambda now: seen(2.0, busy=0.5 if now <= 10 else 0.0), until=120.0, ready=1)
    gone = counts.index(0) * 2.0 + 2.0
    assert gone == pytest.approx(10.0 + 60.0 + GRACE, abs=2.0)


def test_a_request_at_zero_wakes_one_pod_at_the_next_tick():
    policy = KnativePolicy()
    assert policy.decide(seen(2.0), a_fleet(0), 2.0) in (0, 1)
    assert policy.decide(seen(2.0, waiting=1), a_fleet(0), 4.0) == 1
