"""What samples are is told by the query, or by how they move; what cannot be counted is refused."""

import numpy as np
import pytest

from autoscaler.errors import UsageError
from autoscaler.telemetry.prometheus_meaning import Kind, Samples, meaning


def samples(*values: float) -> Samples:
    return Samples(np.arange(len(values)), np.array(values))


RISING = samples(1.0, 2.0, 4.0, 4.0, 5.0)
WANDERING = samples(1.0, 3.0, 2.0, 4.0, 1.0)


@pytest.mark.parametrize(
    "query, kind, window",
    [
        ("http_requests_total", Kind.COUNTER, 0.0),
        ('http_requests_total{job="a", path=~"/v1/.*{}"}', Kind.COUNTER, 0.0),
        ("request_seconds_count", Kind.COUNTER, 0.0),
        ("rate(http_requests_total[5m])", Kind.RATE, 300.0),
        ('sum by (pod) (irate(x_total{a="}"}[90s]))', Kind.RATE, 90.0),
        ("sum(rate(a_total[1m])) + sum(rate(b_total[5m]))", Kind.RATE, 0.0),
        ("sum(increase(http_requests_total[1h]))", Kind.COUNT, 3600.0),
        ("increase(x_total[1h:1m])", Kind.COUNT, 60.0),
        ("job:requests:rate5m", Kind.RATE, 0.0),
        ("http_qps", Kind.RATE, 0.0),
    ],
)
def test_the_query_tells(query, kind, window):
    told = meaning(query, 60.0, [RISING], None)
    assert (told.kind, told.window) == (kind, window)


@pytest.mark.parametrize("series, kind", [(RISING, Kind.COUNTER), (WANDERING, Kind.RATE)])
def test_a_bare_name_is_told_by_how_it_moves(series, kind):
    assert meaning("requests_seen", 60.0, [series], None).kind is kind


def test_a_counter_may_be_reset_now_and_then():
    often = samples(*np.concatenate([np.arange(50.0), np.arange(50.0)]))
    assert meaning("requests_seen", 60.0, [often], None).kind is Kind.COUNTER


def test_what_the_user_says_counts():
    assert meaning("http_requests_total", 60.0, [RISING], Kind.RATE).kind is Kind.RATE
    assert meaning("requests_seen", 60.0, [RISING], Kind.COUNT).window == 60.0


@pytest.mark.parametrize(
    "query, remedy",
    [
        (
            "sum(http_requests_total)",
            r"name http_requests_total alone.*sum\(rate\(http_requests_total\[5m\]\)\)",
        ),
        ("latency_seconds_bucket{le='1'}", "ask for latency_seconds_count"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_remedy(query, remedy):
    with pytest.raises(UsageError, match=remedy):
        meaning(query, 60.0, [RISING], None)
