"""Whether the wait objective and the utilization band can hold together, by the queueing model.

Few slots that are busy most of the time make some requests wait, however many come: below about eight slots
the wait asks for emptier slots than the band does. Scaling by the load keeps both only while a service is
short against the wait, so that is what is told: up to which mean service time S. In M/M/c waits scale with
the service time, so S = wait objective / (the wait's quantile for services of one second).
"""

import math
from pathlib import Path

from autoscaler.cli.findings import Finding, Level
from autoscaler.domain import Objective
from autoscaler.errors import UsageError
from autoscaler.platforms.static import StaticOptions
from autoscaler.queueing.waiting import wait_quantile
from autoscaler.settings import PoolSettings
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.units import format_fraction


def probe_objective(pool: PoolSettings, history: Path) -> Finding:
    """Compare the longest service time for which both hold with what services took, if that is known."""
    subject = f"pools.{pool.name}.objective"
    if pool.auto_slots is not None:
        return Finding(Level.OK, subject, "not compared, for slots are found out while the program runs")
    slots = _replicas_max(pool) * pool.slots_per_replica
    longest = service_time_max(pool.objective, slots)
    with_all = f"with all {slots} slots" if slots > 1 else "with one slot"
    if longest == math.inf:
        return Finding(Level.OK, subject, f"{with_all}, the band and the wait hold together")
    known = _service_time_mean(pool.name, history)
    if known > longest or longest == 0:
        took = f"services took {known:.3g} s lately" if known > longest else "no service is that short"
        text = (
            f"{with_all}, {format_fraction(pool.objective.utilization_low)} busy, the wait is kept only for "
            f"services up to {longest:.3g} s, and {took}: the wait will decide, and slots be less busy than "
            "the band asks; allow a longer wait, a lower band, or more replicas"
        )
        return Finding(Level.WARNING, subject, text)
    text = f"{with_all}, the band and the wait hold together for services up to {longest:.3g} s"
    return Finding(Level.OK, subject, text)


def service_time_max(objective: Objective, slots: int) -> float:
    """Return the longest mean service time [s] for which `slots`, busy as the band's low edge, keep the wait.

    Source: M/M/c, P(W > t) = C(c, a) exp(-(c - a) t / S); see `queueing.waiting`.
    """
    load = objective.utilization_low * slots
    quantile = float(wait_quantile(slots, load, 1.0, objective.wait_quantile))
    return objective.wait_seconds / quantile if quantile > 0 else math.inf


def _replicas_max(pool: PoolSettings) -> int:
    if isinstance(pool.platform, StaticOptions):
        return len(pool.platform.urls)
    return pool.policy.replicas_max


def _service_time_mean(pool: str, history: Path) -> float:
    """Return what services took by the history [s]; not-a-number if it does not tell."""
    try:
        with HistoryReader(history) as reader:
            told = [row for row in reader.intervals(pool) if row.service_time_sum is not None]
    except UsageError:
        return math.nan
    completions = sum(row.completions for row in told)
    return sum(row.service_time_sum or 0.0 for row in told) / completions if completions else math.nan
