"""What a replay is judged by: money, misses, and how often the fleet was in its band.

Waits are judged request by request and in windows of five minutes by time of arrival, since a mean over
a day hides the ten minutes that users remember. The floor for money is clairvoyant: in every 10 seconds
as many replicas as the greatest number of requests in service at once would have needed, had none waited.
"""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Objective
from autoscaler.replay.run import Record
from autoscaler.replay.scenario import Scenario

_WINDOW = 300.0  # s
_GOOD_SHARE = 0.95
_CLAIRVOYANT_STEP = 10.0  # s


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one policy over one scenario; fractions in [0, 1], waits in seconds."""

    policy: str
    requests: int
    gpu_hours: float
    busy_gpu_hours: float
    utilization: float
    wait_p50: float
    wait_p95: float
    wait_p99: float
    objective_met: float
    bad_windows: float
    time_in_band: float
    scale_ups: int
    scale_downs: int
    clairvoyant_gpu_hours: float

    def as_dict(self) -> dict[str, float | int | str]:
        """Plain data, under the names of the fields."""
        return asdict(self)


def report(policy: str, record: Record, scenario: Scenario, clairvoyant_gpu_hours: float) -> Report:
    """Judge one record."""
    busy_hours = record.busy_seconds / 3600 / scenario.slots_per_replica
    hours = record.replica_seconds / 3600
    good = record.waits <= scenario.objective.wait_seconds
    served = np.where(np.isfinite(record.waits), record.waits, scenario.duration)
    quantiles = np.quantile(served, [0.50, 0.95, 0.99]) if len(served) else np.zeros(3)
    return Report(
        policy=policy,
        requests=len(record.waits),
        gpu_hours=hours,
        busy_gpu_hours=busy_hours,
        utilization=busy_hours / hours if hours else 0.0,
        wait_p50=float(quantiles[0]),
        wait_p95=float(quantiles[1]),
        wait_p99=float(quantiles[2]),
        objective_met=float(good.mean()) if len(good) else 1.0,
        bad_windows=_bad_windows(record.arrivals, good),
        time_in_band=_time_in_band(record, scenario.objective),
        scale_ups=record.scale_ups,
        scale_downs=record.scale_downs,
        clairvoyant_gpu_hours=clairvoyant_gpu_hours,
    )


def _bad_windows(arrivals: NDArray[np.float64], good: NDArray[np.bool_]) -> float:
    """Fraction of windows with arrivals in which fewer than 95 % met the objective."""
    if not len(arrivals):
        return 0.0
    window = (arrivals // _WINDOW).astype(np.int64)
    total = np.bincount(window)
    met = np.bincount(window, weights=good)
    used = total > 0
    return float((met[used] < _GOOD_SHARE * total[used]).mean())


def _time_in_band(record: Record, objective: Objective) -> float:
    """Fraction of windows whose occupancy lies inside the band."""
    ticks = np.array([tick[:3] for tick in record.ticks])
    window = ((ticks[:, 0] - 1e-6) // _WINDOW).astype(np.int64)
    busy = np.bincount(window, weights=ticks[:, 1])
    slots = np.bincount(window, weights=ticks[:, 2])
    occupancy = np.divide(busy, slots, out=np.zeros_like(busy), where=slots > 0)
    return float(
        ((occupancy >= objective.utilization_low) & (occupancy <= objective.utilization_high)).mean()
    )


def clairvoyant_gpu_hours(scenario: Scenario, seed: int = 0) -> float:
    """Fewest replica-hours, in steps of 10 s, if every arrival were known and none waited [h]."""
    demand_rng, _ = np.random.default_rng(seed).spawn(2)
    arrivals = scenario.arrival_times(demand_rng)
    ends = np.sort(arrivals + scenario.service_times(len(arrivals), demand_rng))
    steps = int(np.ceil(scenario.duration / _CLAIRVOYANT_STEP))
    # The number in service peaks just after an arrival, or stands at what the step before left.
    in_service = np.arange(1, len(arrivals) + 1) - np.searchsorted(ends, arrivals, side="right")
    step_starts = np.arange(steps) * _CLAIRVOYANT_STEP
    left = np.searchsorted(arrivals, step_starts) - np.searchsorted(ends, step_starts, side="right")
    peak = left.astype(np.float64)
    np.maximum.at(peak, np.minimum((arrivals // _CLAIRVOYANT_STEP).astype(np.int64), steps - 1), in_service)
    return float(np.ceil(peak / scenario.slots_per_replica).sum() * _CLAIRVOYANT_STEP / 3600)
