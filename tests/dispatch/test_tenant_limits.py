"""What a tenant may use: rates over a minute, requests at a time, and every way to the end of one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.dispatch import tenant_limits
from autoscaler.dispatch.tenant_limits import Admitted, Limit, OverLimit, TenantLimiter, TenantLimits

SIX_A_MINUTE = TenantLimits(request_rate=0.1)
TWO_AT_A_TIME = TenantLimits(in_flight_max=2)


def test_one_minute_is_let_in_at_once_and_then_one_for_each_that_the_rate_brings():
    limiter = TenantLimiter()
    for _ in range(6):
        assert isinstance(limiter.enter("a", SIX_A_MINUTE, 0, now=0.0), Admitted)
    assert limiter.enter("a", SIX_A_MINUTE, 0, now=0.0) == OverLimit(Limit.REQUESTS, pytest.approx(10.0))
    assert limiter.enter("a", SIX_A_MINUTE, 0, now=4.0) == OverLimit(Limit.REQUESTS, pytest.approx(6.0))
    assert isinstance(limiter.enter("a", SIX_A_MINUTE, 0, now=10.0), Admitted)


def test_who_comes_back_when_told_to_is_let_in():
    limiter, now = TenantLimiter(), 3.0
    limits = TenantLimits(request_rate=1 / 7, token_rate=11.3)
    for _ in range(200):
        answer = limiter.enter("a", limits, 100.0, now)
        if isinstance(answer, OverLimit):
            now += answer.retry_after
            assert isinstance(limiter.enter("a", limits, 100.0, now), Admitted)


def test_one_tenant_does_not_use_what_another_may():
    limiter = TenantLimiter()
    limits = TenantLimits(in_flight_max=1)
    assert isinstance(limiter.enter("a", limits, 0, now=0.0), Admitted)
    assert isinstance(limiter.enter("b", limits, 0, now=0.0), Admitted)
    assert limiter.enter("a", limits, 0, now=0.0) == OverLimit(Limit.IN_FLIGHT, None)


def test_l1_a_place_is_free_again_when_its_request_ends_and_only_once():
    limiter = TenantLimiter()
    first, _ = (limiter.enter("a", TWO_AT_A_TIME, 0, now=0.0) for _ in range(2))
    assert isinstance(limiter.enter("a", TWO_AT_A_TIME, 0, now=0.0), OverLimit)
    limiter.leave(first, now=1.0)
    limiter.leave(first, now=1.0)
    assert limiter.in_flight("a") == 1
    assert isinstance(limiter.enter("a", TWO_AT_A_TIME, 0, now=1.0), Admitted)
    assert isinstance(limiter.enter("a", TWO_AT_A_TIME, 0, now=1.0), OverLimit)


def test_tokens_are_made_good_at_the_end_and_a_debt_is_waited_for():
    limiter, limits = TenantLimiter(), TenantLimits(token_rate=10.0)  # 600 a minute
    request = limiter.enter("a", limits, 100.0, now=0.0)
    limiter.leave(request, now=0.0, tokens=700.0)
    assert limiter.enter("a", limits, 1.0, now=0.0) == OverLimit(Limit.TOKENS, pytest.approx(10.1))
    assert isinstance(limiter.enter("a", limits, 1.0, now=10.2), Admitted)


def test_tokens_that_were_not_used_are_given_back():
    limiter, limits = TenantLimiter(), TenantLimits(token_rate=10.0)
    request = limiter.enter("a", limits, 600.0, now=0.0)
    assert isinstance(limiter.enter("a", limits, 500.0, now=0.0), OverLimit)
    limiter.leave(request, now=0.0, tokens=20.0)
    assert isinstance(limiter.enter("a", limits, 500.0, now=0.0), Admitted)


def test_a_request_larger_than_a_minute_passes_when_the_bucket_is_full_rather_than_never():
    limiter, limits = TenantLimiter(), TenantLimits(token_rate=10.0)
    assert isinstance(limiter.enter("a", limits, 5000.0, now=0.0), Admitted)
    assert limiter.enter("a", limits, 1.0, now=0.0).retry_after == pytest.approx(440.1)


def test_what_was_used_is_remembered_when_the_limits_change():
    limiter = TenantLimiter()
    for _ in range(6):
        limiter.enter("a", SIX_A_MINUTE, 0, now=0.0)
    assert isinstance(limiter.enter("a", TenantLimits(request_rate=1.0), 0, now=0.0), OverLimit)
    assert isinstance(limiter.enter("a", TenantLimits(), 0, now=0.0), Admitted)


def test_l6_names_that_clients_make_up_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(tenant_limits, "TENANTS_MAX", 100)
    limiter = TenantLimiter()
    stays = limiter.enter("at work", TWO_AT_A_TIME, 0, now=0.0)
    for number in range(1000):
        limiter.leave(limiter.enter(f"n{number}", TWO_AT_A_TIME, 0, now=0.0), now=0.0)
    assert len(limiter) <= 100
    assert limiter.in_flight("at work") == 1
    limiter.leave(stays, now=0.0)
    assert limiter.in_flight("at work") == 0


@pytest.mark.parametrize("wrong", [{"request_rate": 0}, {"token_rate": -1.0}, {"in_flight_max": 0}])
def test_a_limit_that_lets_nobody_in_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TenantLimits(**wrong)


steps = st.lists(
    st.tuples(st.floats(0, 30), st.floats(0, 400), st.floats(0, 800), st.booleans()), min_size=1, max_size=60
)


@settings(max_examples=200)
@given(steps=steps, rate=st.floats(0.02, 3.0), at_a_time=st.integers(1, 4))
def test_over_any_time_a_tenant_gets_no_more_than_its_rate_and_one_minute(steps, rate, at_a_time):
    limits = TenantLimits(request_rate=rate, in_flight_max=at_a_time)
    limiter, now, inside, let_in = TenantLimiter(), 0.0, [], []
    for pause, asked, used, leaves in steps:
        now += pause
        if leaves and inside:
            limiter.leave(inside.pop(), now, used)
        answer = limiter.enter("a", limits, asked, now)
        if isinstance(answer, Admitted):
            inside.append(answer)
            let_in.append(now)
        else:
            assert answer.limit is Limit.IN_FLIGHT or answer.retry_after > 0
        assert limiter.in_flight("a") == len(inside) <= at_a_time
    for first, since in enumerate(let_in):
        for last in range(first, len(let_in)):
            assert last - first + 1 <= max(1, rate * 60) + rate * (let_in[last] - since) + 1e-6
    for request in inside:
        limiter.leave(request, now)
    assert limiter.in_flight("a") == 0
