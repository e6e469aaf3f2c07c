"""A token bucket: what fills it, what empties it."""

import pytest

from autoscaler.dispatch.retry_budget import RetryBudget, RetryBudgetOptions


def taken(budget: RetryBudget, sent: int, now: float) -> int:
    """How many retries are allowed in one go."""
    count = 0
    while budget.take(sent, now):
        count += 1
    return count


def test_it_starts_full():
    assert taken(RetryBudget(RetryBudgetOptions(burst=7.0)), sent=0, now=100.0) == 7


def test_every_request_sent_fills_in_its_share():
    budget = RetryBudget(RetryBudgetOptions(share=0.25, rate=0.0, burst=5.0))
    assert taken(budget, 0, 0.0) == 5
    assert taken(budget, 12, 1.0) == 3
    assert taken(budget, 1000, 2.0) == 5  # never more than the burst


def test_time_fills_in_its_rate():
    budget = RetryBudget(RetryBudgetOptions(share=0.0, rate=2.0, burst=5.0))
    assert taken(budget, 0, 0.0) == 5
    assert taken(budget, 0, 1.5) == 3


def test_when_every_call_fails_a_fifth_more_is_sent_and_not_the_manifold():
    budget, sent = RetryBudget(RetryBudgetOptions(share=0.2, rate=0.0, burst=1.0)), 0
    for _ in range(1000):
        sent += 1
        while budget.take(sent, 0.0):
            sent += 1
    assert sent == pytest.approx(1250, abs=2)  # 1000 / (1 - 0.2)


@pytest.mark.parametrize("wrong", [{"share": -0.1}, {"rate": -1.0}, {"burst": 0.5}])
def test_an_option_that_cannot_be_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryBudgetOptions(**wrong)
