"""Metrics for Prometheus, in its text format or as OpenMetrics.

Distributions and counts are kept here, as they happen. Gauges are not kept at all: a scrape asks for
one `Status` and reads them off it, so they can never disagree with the ledger they describe. What is
not known has no sample; it is never 0.

Every label takes its values from a list that is known beforehand: the pools of the configuration,
and enums.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from autoscaler.domain import (
    STANDARD,
    Decision,
    DropReason,
    Fleet,
    Observation,
    Outcome,
    Reason,
    Request,
    ScaleTo,
    TokenUse,
)
from autoscaler.telemetry.gauges import gauges
from autoscaler.telemetry.status import Status
from autoscaler.telemetry.token_metrics import TokenMetrics

_WAIT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
_SERVICE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
_BATCH_BUCKETS = (2, 4, 8, 16, 32, 64, 128, 256, 512)


class PoolMetrics:
    """Counts and times the requests of one pool; implements `ports.RequestListener`."""

    def __init__(
        self,
        pool: str,
        waiting_time: Histogram,
        service_time: Histogram,
        batch_size: Histogram,
        tokens: TokenMetrics,
    ) -> None:
        self._pool = pool
        self._waiting_time = waiting_time
        self._service_time = service_time
        self._batch_size = batch_size
        self._tokens = tokens
        self._requests = {(STANDARD, outcome): 0 for outcome in Outcome}
        self._dropped = dict.fromkeys(DropReason, 0)

    def arrived(self, request: Request, now: float) -> None:
        """Do nothing: it is counted when it ends."""

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """Its wait is over."""
        self._waiting_time.observe(now - request.arrived_at)

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """A service is over."""
        self._service_time.observe(service_time)

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing: no service is over, and the longer wait that follows is counted too."""

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """Count it by its class and how it ended; classes are those of the configuration, so they are few."""
        key = (request.priority_class, outcome)
        self._requests[key] = self._requests.get(key, 0) + 1
        if reason is not None:
            self._dropped[reason] += 1

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """Count its tokens, and time them."""
        self._tokens.add(self._pool, request, use)

    def batched(self, rows: int) -> None:
        """Several requests were merged into one call, of so many rows."""
        self._batch_size.observe(rows)

    def outcomes(self) -> dict[Outcome, int]:
        """Return how many ended in each way so far, of all classes together [requests]."""
        totals = dict.fromkeys(Outcome, 0)
        for (_, outcome), count in self._requests.items():
            totals[outcome] += count
        return totals

    def dropped(self) -> dict[DropReason, int]:
        """Return how many the queue let go of, by the reason, so far [requests]."""
        return dict(self._dropped)

    def requests(self) -> dict[tuple[str, Outcome], int]:
        """Return how many of each class ended in each way so far [requests]."""
        return dict(self._requests)


class Metrics(Collector):
    """All metrics of the program, on a registry of their own.

    Counts decisions as they are recorded, so it implements `ports.DecisionLog` too.

    Parameters
    ----------
    pools : iterable of str
        The names of all pools.
    status : callable
        Returns the `Status` of the moment; asked once for each scrape.
    """

    def __init__(self, pools: tuple[str, ...], status: Callable[[], Status]) -> None:
        self._status = status
        self._registry = CollectorRegistry()
        waiting = self._histogram("waiting_time_seconds", "From arrival to a slot.", _WAIT_BUCKETS)
        service = self._histogram("service_time_seconds", "In a slot, whatever the answer.", _SERVICE_BUCKETS)
        batches = self._histogram(
            "batch_size", "Rows of each call that serves several requests.", _BATCH_BUCKETS
        )
        self._tokens = TokenMetrics(self._registry)
        self._pools = {
            pool: PoolMetrics(
                pool, waiting.labels(pool), service.labels(pool), batches.labels(pool), self._tokens
            )
            for pool in pools
        }
        # From 0 on, so that the first change of a fleet is an increase too.
        self._decisions: Counter[tuple[str, str, str]] = Counter(
            {(pool, way, reason.value): 0 for pool in pools for way in ("up", "down") for reason in Reason}
        )
        self._shown: list[Callable[[], Iterable[Metric]]] = []
        self._registry.register(self)

    def for_pool(self, pool: str) -> PoolMetrics:
        """Return the listener of one pool. Raises KeyError for a pool that was not named at the start."""
        return self._pools[pool]

    def record(
        self,
        pool: str,
        observation: Observation | None,
        fleet: Fleet,
        decision: Decision,
        now: float,
        wall_time: float,
    ) -> None:
        """Count a decision by its direction and reason."""
        self._decisions[pool, _direction(decision), decision.reason.value] += 1

    def show(self, families: Callable[[], Iterable[Metric]]) -> None:
        """Show what another part counts too, at every scrape; its labels are bounded as those here are."""
        self._shown.append(families)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics and their content type, in the format that an Accept header asks for."""
        encoder, content_type = choose_encoder(accept)
        return encoder(self._registry), content_type

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: the names need a status, and there may be none yet at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what is counted, then what a status shows."""
        requests = CounterMetricFamily(
            "autoscaler_requests", "Requests that ended, by how.", labels=["pool", "class", "outcome"]
        )
        for pool, metrics in self._pools.items():
            for (priority_class, outcome), count in metrics.requests().items():
                requests.add_metric([pool, priority_class, outcome.value], count)
        decisions = CounterMetricFamily(
            "autoscaler_decisions",
            "Decisions taken, by what and why.",
            labels=["pool", "direction", "reason"],
        )
        for labels, count in self._decisions.items():
            decisions.add_metric(labels, count)
        dropped = CounterMetricFamily(
            "autoscaler_dropped_requests",
            "Requests that the queue let go of unserved, by the reason.",
            labels=["pool", "reason"],
        )
        for pool, metrics in self._pools.items():
            for drop_reason, count in metrics.dropped().items():
                dropped.add_metric([pool, drop_reason.value], count)
        yield requests
        yield dropped
        yield decisions
        yield from self._tokens.counts()
        yield from gauges(self._status())
        for families in self._shown:
            yield from families()

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"autoscaler_{name}", text, ["pool"], buckets=buckets, registry=self._registry)


def _direction(decision: Decision) -> str:
    if not isinstance(decision, ScaleTo):
        return "hold"
    return "up" if decision.desired > decision.current else "down"
