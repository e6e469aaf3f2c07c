"""What is shown of tenants: how many of their requests were let in, and how many were refused by what.

The names are those of the book, so many at most, and `other` for everybody else: a name that a client makes
up is no label.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily

from autoscaler.dispatch.tenant_limits import Limit

OTHER = "other"
LET_IN = "let_in"
NO_KEY = "no_key"
FORBIDDEN = "forbidden"
RESULTS = (LET_IN, NO_KEY, FORBIDDEN, *(limit.value for limit in Limit))


class TenantCounts:
    """Counts requests by tenant and by what became of them at the gate."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._names: frozenset[str] = frozenset()
        self._counts: Counter[tuple[str, str]] = Counter()

    def know(self, names: Iterable[str]) -> None:
        """Give labels of their own to the first of `names`; who has one keeps it while there is room."""
        wanted = list(names)
        kept = [name for name in wanted if name in self._names]
        new = [name for name in wanted if name not in self._names]
        self._names = frozenset((kept + new)[: self._names_max])
        for name, result in list(self._counts):
            if name not in self._names and name != OTHER:
                self._counts[OTHER, result] += self._counts.pop((name, result))

    def add(self, tenant: str, result: str) -> None:
        """Count one request."""
        self._counts[tenant if tenant in self._names else OTHER, result] += 1

    def collect(self) -> list[CounterMetricFamily]:
        """Return them for Prometheus."""
        family = CounterMetricFamily(
            "autoscaler_tenant_requests",
            "Requests at the door, by tenant and result.",
            labels=["tenant", "result"],
        )
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        return [family] if self._counts else []

    def all(self) -> Mapping[tuple[str, str], int]:
        """Return the numbers so far by tenant and result [requests]."""
        return dict(self._counts)
