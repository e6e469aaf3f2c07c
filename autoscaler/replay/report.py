"""What a replay is judged by: money, misses, and how often the fleet was in its band.

Waits are judged request by request and in windows of five minutes by time of arrival, since a mean over
a day hides the ten minutes that users remember (`windows`). The floor for money is `clairvoyant`.
"""

from dataclasses import asdict, dataclass

import numpy as np

from autoscaler.domain import Objective
from autoscaler.replay.clairvoyant import clairvoyant_gpu_hours
from autoscaler.replay.record import Record
from autoscaler.replay.scenario import Scenario
from autoscaler.replay.windows import Windows, served_waits, windows

__all__ = ["Report", "clairvoyant_gpu_hours", "report"]


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one policy over one scenario; fractions in [0, 1], waits in seconds.

    `busy_gpu_hours` are slots in use over time, as replicas full of them; with own service times nobody
    gets below. `bad_windows` are of those with arrivals, `time_in_band` of all. `broken` requests were in
    service on one of the replicas lost in `interruptions`; they were served again.
    """

    policy: str
    requests: int
    hours: float
    gpu_hours: float
    busy_gpu_hours: float
    utilization: float
    replicas_mean: float
    replicas_max: int
    wait_p50: float
    wait_p95: float
    wait_p99: float
    objective_met: float
    bad_windows: float
    time_in_band: float
    scale_ups: int
    scale_downs: int
    interruptions: int
    broken: int
    clairvoyant_gpu_hours: float

    def as_dict(self) -> dict[str, float | int | str]:
        """Plain data, under the names of the fields."""
        return asdict(self)


def report(policy: str, record: Record, scenario: Scenario, clairvoyant_gpu_hours: float) -> Report:
    """Judge one record."""
    hours, gpu_hours = scenario.duration / 3600, record.replica_seconds / 3600
    busy_gpu_hours = record.busy_seconds / 3600 / scenario.slots_per_replica
    good = record.waits <= scenario.objective.wait_seconds
    waits = served_waits(record, scenario)
    quantiles = np.quantile(waits, [0.50, 0.95, 0.99]) if len(waits) else np.zeros(3)
    by_window = windows(record, scenario)
    judged = by_window.bad[by_window.arrivals > 0]
    return Report(
        policy=policy,
        requests=len(record.waits),
        hours=hours,
        gpu_hours=gpu_hours,
        busy_gpu_hours=busy_gpu_hours,
        utilization=busy_gpu_hours / gpu_hours if gpu_hours else 0.0,
        replicas_mean=gpu_hours / hours if hours else 0.0,
        replicas_max=max((sum(tick[3:]) for tick in record.ticks), default=0),
        wait_p50=float(quantiles[0]),
        wait_p95=float(quantiles[1]),
        wait_p99=float(quantiles[2]),
        objective_met=float(good.mean()) if len(good) else 1.0,
        bad_windows=float(judged.mean()) if len(judged) else 0.0,
        time_in_band=_time_in_band(by_window, scenario.objective),
        scale_ups=record.scale_ups,
        scale_downs=record.scale_downs,
        interruptions=record.interruptions,
        broken=record.broken,
        clairvoyant_gpu_hours=clairvoyant_gpu_hours,
    )


def _time_in_band(by_window: Windows, objective: Objective) -> float:
    """Fraction of windows whose occupancy lies inside the band."""
    occupancy = by_window.occupancy
    inside = (occupancy >= objective.utilization_low) & (occupancy <= objective.utilization_high)
    return float(inside.mean())
