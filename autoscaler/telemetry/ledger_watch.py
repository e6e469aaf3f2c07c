"""The ledger check of all servers of one pool, and what it finds as a metric."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan

import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.telemetry.ledger_check import LedgerCheck, LedgerDiagnosis, LedgerFinding
from autoscaler.telemetry.scrape.presets import RUNNING, WAITING
from autoscaler.telemetry.scrape.scraper import Exporter

log = structlog.get_logger(__name__)

Leases = Callable[[], Mapping[str, int]]
"""Returns the slots in use by base URL of the replica, from the ledger."""


class LedgerWatch:
    """Compares what the servers of one pool say that they hold with the ledger.

    Parameters
    ----------
    pool : str
        Its name, for the log.
    leases : callable
        Reads the ledger.
    """

    def __init__(self, pool: str, leases: Leases) -> None:
        self._pool = pool
        self._leases = leases
        self._before: Mapping[str, int] = {}
        self._checks: dict[str, LedgerCheck] = {}

    @property
    def findings(self) -> tuple[LedgerFinding, ...]:
        """What is found now."""
        return tuple(check.finding for check in self._checks.values() if check.finding is not None)

    def begin(self) -> None:
        """Read the ledger before the servers are asked."""
        self._before = self._leases()

    def compare(self, servers: Mapping[str, Exporter], now: float) -> None:
        """Compare after they were asked; `servers` are those that show their own count, by base URL."""
        after = self._leases()
        for url in self._checks.keys() - servers.keys():
            del self._checks[url]
        for url, exporter in servers.items():
            running, waiting = exporter.readings[RUNNING], exporter.readings.get(WAITING)
            held = running.value + (0.0 if waiting is None else waiting.value)
            if running.fault or (waiting is not None and waiting.fault) or isnan(held):
                continue  # what it said last is not what it holds now
            check = self._checks.setdefault(url, LedgerCheck(url))
            before = check.finding
            self._tell(before, check.take(held, (self._before.get(url, 0), after.get(url, 0)), now), url)

    def _tell(self, before: LedgerFinding | None, after: LedgerFinding | None, url: str) -> None:
        if (before and before.diagnosis) == (after and after.diagnosis):
            return
        if after is None:
            log.info("server and ledger agree again", pool=self._pool, server=url)
        else:
            log.warning(
                "server and ledger disagree",
                pool=self._pool,
                server=url,
                diagnosis=str(after.diagnosis),
                why=after.text,
            )


def ledger_metrics(pools: Mapping[str, Sequence[LedgerFinding]]) -> Iterator[Metric]:
    """Yield how many servers of each pool differ, by how."""
    family = GaugeMetricFamily(
        "autoscaler_ledger_disagreements",
        "Servers that lastingly hold more or fewer requests than they have slots in use.",
        labels=["pool", "diagnosis"],
    )
    for pool, findings in pools.items():
        for diagnosis in LedgerDiagnosis:
            family.add_metric([pool, diagnosis.value], sum(each.diagnosis is diagnosis for each in findings))
    yield family
