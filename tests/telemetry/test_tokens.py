"""Tokens as metrics, as a status, and in words."""

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from autoscaler.dashboard.pool_words import facts, tokens_in_words
from autoscaler.domain import Request, TokenUse
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.token_window import TokenWindow
from tests.telemetry.status_examples import a_pool, a_status

REQUEST = Request("a", arrived_at=10.0, deadline=99.0)
STREAMED = TokenUse(9, 5, False, started_at=10.5, first_at=11.0, last_at=12.0)
WHOLE = TokenUse(7, 3, False, started_at=10.5)
ESTIMATED = TokenUse(4, 2, True, started_at=10.5, first_at=11.0, last_at=11.0)


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    text, _ = metrics.render("application/openmetrics-text; version=1.0.0")
    return {
        (sample.name, *(value for name, value in sample.labels.items() if name != "pool")): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_tokens_are_counted_by_direction_and_those_that_are_estimated_once_more():
    metrics = Metrics(("chat",), a_status)
    for use in (STREAMED, WHOLE, ESTIMATED):
        metrics.for_pool("chat").answered(REQUEST, use, 13.0)
    found = samples(metrics)
    assert found["autoscaler_tokens_total", "in"] == 20
    assert found["autoscaler_tokens_total", "out"] == 10
    assert found["autoscaler_tokens_estimated_total", "in"] == 4
    assert found["autoscaler_tokens_estimated_total", "out"] == 2


def test_the_first_token_is_timed_from_the_arrival_and_from_the_slot():
    metrics = Metrics(("chat",), a_status)
    for use in (STREAMED, WHOLE):
        metrics.for_pool("chat").answered(REQUEST, use, 13.0)
    found = samples(metrics)
    assert found["autoscaler_time_to_first_token_seconds_sum", "arrival"] == 1.0
    assert found["autoscaler_time_to_first_token_seconds_sum", "slot"] == 0.5
    assert found["autoscaler_time_to_first_token_seconds_count", "slot"] == 1
    assert found["autoscaler_time_per_output_token_seconds_sum",] == 0.25
    assert found["autoscaler_time_per_output_token_seconds_count",] == 1


def test_a_pool_without_tokens_has_no_samples_of_them():
    assert not [name for name in samples(Metrics(("chat",), a_status)) if "token" in name[0]]


def test_rates_are_over_the_window_and_what_is_older_is_forgotten():
    window = TokenWindow(now=0.0, age_max=60.0)
    assert math.isnan(window.summary(10.0).rate_out)
    for _ in range(6):
        window.answered(REQUEST, STREAMED, 20.0)
    assert window.summary(30.0).rate_out == pytest.approx(1.0)  # 30 tokens in the 30 s since the beginning
    assert window.summary(70.0).rate_in == pytest.approx(54 / 60)
    assert window.summary(100.0).rate_out == 0.0
    assert math.isnan(window.summary(100.0).first_token_p50)


def test_a_full_window_is_as_long_as_what_it_holds():
    window = TokenWindow(now=0.0, count_max=10)
    for at in range(40):
        window.answered(REQUEST, STREAMED, float(at))
    assert window.summary(39.0).rate_out == pytest.approx(50 / 9)


def test_the_times_are_those_of_streams():
    window = TokenWindow(now=0.0)
    for use in (STREAMED, WHOLE, ESTIMATED):
        window.answered(REQUEST, use, 13.0)
    summary = window.summary(13.0)
    assert (summary.first_token_p50, summary.first_token_p95) == (1.0, 1.0)
    assert summary.per_token_p95 == 0.25
    assert summary.estimated == pytest.approx(1 / 3)


def test_tokens_are_said_in_words_where_there_are_any():
    window = TokenWindow(now=0.0)
    for use in (STREAMED, ESTIMATED):
        window.answered(REQUEST, use, 10.0)
    pool = a_pool(tokens=window.summary(10.0))
    words = "0.7/s out, 1.3/s in, 50 % of the answers estimated; the first after 1 s (p95), then each 0 ms"
    assert str(tokens_in_words(pool)) == words
    assert "tokens 0.7/s" in facts(pool)
    assert not [fact for fact in facts(a_pool()) if "token" in fact]
