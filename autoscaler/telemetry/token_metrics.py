"""Tokens of language models as metrics: how many, and how fast they come.

A pool has samples from its first token on: that a pool has none is not known to be so of one that has not
been asked, or that is no language model.
"""

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.domain import Request, TokenUse

_IN, _OUT = "in", "out"
_SINCE_ARRIVAL, _SINCE_SLOT = "arrival", "slot"

_FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40, 80, 160)
_PER_TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2.5)


class TokenMetrics:
    """The tokens of all pools.

    Parameters
    ----------
    registry : CollectorRegistry
        Shows the histograms; the counts are shown by `counts`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tokens: Counter[tuple[str, str]] = Counter()
        self._estimated: Counter[tuple[str, str]] = Counter()
        self._first = Histogram(
            "autoscaler_time_to_first_token_seconds",
            "To the first text of a stream, since the request arrived or got its slot.",
            ["pool", "since"],
            buckets=_FIRST_TOKEN_BUCKETS,
            registry=registry,
        )
        self._per_token = Histogram(
            "autoscaler_time_per_output_token_seconds",
            "From one token of a stream to the next, as the mean of each answer.",
            ["pool"],
            buckets=_PER_TOKEN_BUCKETS,
            registry=registry,
        )

    def add(self, pool: str, request: Request, use: TokenUse) -> None:
        """Count the tokens of one answer, and time them if it was streamed."""
        for direction, tokens in ((_IN, use.tokens_in), (_OUT, use.tokens_out)):
            self._tokens[pool, direction] += tokens
            self._estimated[pool, direction] += tokens if use.is_estimated else 0
        if not use.is_streamed:
            return
        self._first.labels(pool, _SINCE_ARRIVAL).observe(use.first_at - request.arrived_at)
        self._first.labels(pool, _SINCE_SLOT).observe(use.first_at - use.started_at)
        if use.tokens_out > 1:
            self._per_token.labels(pool).observe(use.time_per_token)

    def counts(self) -> Iterator[Metric]:
        """Yield what was counted."""
        yield _family("tokens", "Tokens of prompts (in) and answers (out).", self._tokens)
        text = "Those of them that no server told, so that they are estimated."
        yield _family("tokens_estimated", text, self._estimated)


def _family(name: str, text: str, counts: Counter[tuple[str, str]]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"autoscaler_{name}", text, labels=["pool", "direction"])
    for labels, count in counts.items():
        family.add_metric(labels, count)
    return family
