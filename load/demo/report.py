"""From what happened to figures.

Requests, failures and waits are the client's; the wait is what the program said of each request in
`Server-Timing`, and `unexplained` is what the client measured beyond queue and service, which shows that
the rest is true. Replicas and busy slots were sampled from the running program; decisions are those of its
history file.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autoscaler.domain import Decision, ScaleTo
from autoscaler.queueing.staffing import servers_for_wait
from autoscaler.queueing.utilization_band import servers_for_utilization
from load.demo.sampler import Sample
from load.demo.scenario import Scenario
from load.generator import Record
from load.summary import Spread, summarize

WINDOW = 6.0
"""Occupancy is judged over windows of this length [s]: four hours of a day in fast motion."""


@dataclass(frozen=True)
class Report:
    """The result; field names are the keys of the JSON form. Times in seconds, else fractions or counts.

    Attributes
    ----------
    objective_met : float
        Fraction of all requests that waited no longer than the objective allows; a failed one did not.
    occupancy_mean : float
        Busy slots / slots of ready replicas, both averaged over the run.
    time_in_band : float
        Fraction of windows of 6 s whose occupancy lies inside the band.
    replica_seconds, fixed_fleet_replica_seconds : float
        Summed over the run, of this fleet, and of one of `fixed_fleet` replicas: the fewest that queueing
        theory asks for at the peak rate that was offered, at the service times measured, for the same wait
        objective and no more than the upper edge of the same band.
    objective_met_by_day : list of float
        The same, of the requests of each day in fast motion that has begun.
    unexplained_p99 : float
        Of latency − wait − service, as the client sees it.
    """

    requests: int
    failures: int
    objective_met: float
    occupancy_mean: float
    time_in_band: float
    scale_ups: int
    scale_downs: int
    replica_seconds: float
    fixed_fleet_replica_seconds: float
    wait_p50: float | None
    wait_p95: float | None
    wait_p99: float | None
    seconds: float
    server: str
    replicas_min: int
    replicas_max: int
    fixed_fleet: int
    service_time_mean: float | None
    latency_p99: float | None
    unexplained_p99: float | None
    objective_met_by_day: list[float]
    interrupted: bool


def report(
    scenario: Scenario,
    records: Sequence[Record],
    samples: Sequence[Sample],
    decisions: Sequence[Decision],
    interrupted: bool,
) -> Report:
    """Return the figures of a run."""
    summary = summarize(records)
    seconds = max(summary.seconds, samples[-1].time if samples else 0.0)
    fleet = fixed_fleet(scenario, records)
    replicas = [sample.replicas for sample in samples]
    finished = [record for record in records if record.finished]
    good = [record for record in finished if not record.failed]
    unexplained = Spread.of(unexplained_time(record) for record in good)
    busy, slots = _slots(samples)
    changes = [decision.desired - decision.current for decision in decisions if isinstance(decision, ScaleTo)]
    return Report(
        requests=summary.requests,
        failures=summary.failures,
        objective_met=met(scenario, finished),
        occupancy_mean=float(busy.sum() / slots.sum()) if slots.sum() > 0 else 0.0,
        time_in_band=time_in_band(scenario, samples),
        scale_ups=sum(change > 0 for change in changes),
        scale_downs=sum(change < 0 for change in changes),
        replica_seconds=replica_seconds(samples, seconds),
        fixed_fleet_replica_seconds=fleet * seconds,
        wait_p50=summary.wait.p50,
        wait_p95=summary.wait.p95,
        wait_p99=summary.wait.p99,
        seconds=seconds,
        server=scenario.server,
        replicas_min=min(replicas, default=0),
        replicas_max=max(replicas, default=0),
        fixed_fleet=fleet,
        service_time_mean=summary.service.mean,
        latency_p99=summary.latency.p99,
        unexplained_p99=unexplained.p99,
        objective_met_by_day=[met(scenario, day) for day in by_day(scenario, finished)],
        interrupted=interrupted,
    )


def met(scenario: Scenario, finished: Sequence[Record]) -> float:
    """Return the fraction that waited no longer than the objective allows; a failed one did not."""
    waits = [record.queue_time for record in finished if not record.failed]
    return sum(wait is not None and wait <= scenario.wait for wait in waits) / max(1, len(finished))


def by_day(scenario: Scenario, records: Sequence[Record]) -> list[list[Record]]:
    """Sort records by the day in fast motion on which they were to be sent."""
    days: list[list[Record]] = []
    for record in records:
        day = int(record.intended // scenario.day)
        days += [[] for _ in range(len(days), day + 1)]
        days[day].append(record)
    return days


def unexplained_time(record: Record) -> float | None:
    """Return what the client measured beyond the wait and the service that the program states [s]."""
    if record.latency is None or record.queue_time is None or record.service_time is None:
        return None
    return record.latency - record.queue_time - record.service_time


def fixed_fleet(scenario: Scenario, records: Sequence[Record]) -> int:
    """Return the replicas of a fleet of fixed size that serves the peak as well; 0 if no service was seen."""
    times = np.array([record.service_time for record in records if record.service_time is not None])
    if times.size == 0:
        return 0
    mean = float(times.mean())
    scv = float(times.var()) / mean**2
    for_wait = servers_for_wait(scenario.rate_peak, mean, scenario.wait, scenario.quantile, service_scv=scv)
    for_band = servers_for_utilization(scenario.rate_peak * mean, scenario.utilization_high)
    return max(for_wait, for_band)


def replica_seconds(samples: Sequence[Sample], seconds: float) -> float:
    """Sum replicas over time, each sample standing until the next [s]."""
    times = [*(sample.time for sample in samples), seconds]
    return sum(
        sample.replicas * (until - sample.time) for sample, until in zip(samples, times[1:], strict=True)
    )


def time_in_band(scenario: Scenario, samples: Sequence[Sample]) -> float:
    """Return the fraction of whole windows whose occupancy lies inside the band; 0 if there is none."""
    busy, slots = _slots(samples)
    windows = np.array([sample.time // WINDOW for sample in samples], dtype=int)
    whole = range(math.floor(samples[-1].time / WINDOW)) if samples else range(0)
    inside = [
        scenario.utilization_low * slots[windows == window].sum()
        <= busy[windows == window].sum()
        <= scenario.utilization_high * slots[windows == window].sum()
        for window in whole
    ]
    return sum(map(bool, inside)) / len(inside) if inside else 0.0


def _slots(samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray]:
    """Return busy and all slots of ready replicas, a value a sample."""
    busy = np.array([sample.busy for sample in samples], dtype=float)
    return busy, np.array([sample.slots for sample in samples], dtype=float)
