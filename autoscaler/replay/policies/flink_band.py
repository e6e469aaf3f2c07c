"""A band in the style of Flink's autoscaler: act only outside of it, then aim at its target.

Restated from `flink-autoscaler` of apache/flink-kubernetes-operator, with one job vertex for the pool. The
demand of the last 15 minutes and the true rate of a replica (what it did over the share of time it was
busy) give the utilization that all replicas would have. Above `max` (target + 0.3, at most 1) or below
`min` (target - 0.3) the count becomes what brings it to the target, 0.7 by default, plus the rate that
works a backlog off in 30 minutes; to no less than 40 % of what there is. A step down waits for an hour, and
the greatest count asked for in that hour is taken. After a step 5 minutes of metrics are thrown away and a
whole window is gathered anew before the next.

Left out: the cost of restarting a job (a replica more does not restart the others), memory tuning, blocking
of steps that proved ineffective (off by default), key groups.
"""

from collections import deque
from math import ceil

from autoscaler.domain import Fleet, Observation

COLLECTION = 60.0  # s
METRICS_WINDOW = 900.0  # s
STABILIZATION = 300.0  # s
SCALE_DOWN_INTERVAL = 3600.0  # s
CATCH_UP = 1800.0  # s
LAG_THRESHOLD = 300.0  # s: a backlog longer than this moves the band to [0, 1]
SCALE_DOWN_FACTOR_MAX = 0.6
BOUNDARY = 0.3
TARGET = 0.70


def band_replicas(
    replicas: int, arrival_rate: float, replica_rate: float, backlog: float, target: float, boundary: float
) -> int:
    """Replicas for a demand and a backlog, when each does `replica_rate` [1/s] if busy all the time."""
    capacity = replicas * replica_rate
    catch_up = backlog / CATCH_UP
    low, high = target - boundary, min(1.0, target + boundary)
    if arrival_rate and backlog / arrival_rate > LAG_THRESHOLD:
        low, high = 0.0, 1.0
    too_small = capacity < arrival_rate / high + catch_up
    too_large = low > 0 and capacity > arrival_rate / low + catch_up
    if not too_small and not too_large:
        return replicas
    factor = max((arrival_rate / target + catch_up) / capacity, 1 - SCALE_DOWN_FACTOR_MAX)
    return max(1, ceil(round(replicas * factor, 9)))


class FlinkBandPolicy:
    """The band around `target`, a collection of metrics a minute."""

    interval: float | None = COLLECTION

    def __init__(self, target: float = TARGET, boundary: float = BOUNDARY) -> None:
        self.name = f"flink band {target:.2f}"
        self._target, self._boundary = target, boundary
        self._gathered: deque[tuple[float, Observation]] = deque()
        self._gathers_from = 0.0
        self._down_asked_at: float | None = None
        self._down_highest = 0

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int | None:
        """Replicas wanted, once a whole window is gathered."""
        if now - observation.interval < self._gathers_from:
            return None
        self._gathered.append((now, observation))
        while self._gathered[0][0] <= now - METRICS_WINDOW:
            self._gathered.popleft()
        if now - self._gathers_from < METRICS_WINDOW or not fleet.ordered:
            return None
        decided = self._delayed(self._wanted(fleet), fleet.ordered, now)
        if decided == fleet.ordered:
            return None
        self._gathered.clear()
        self._gathers_from = now + STABILIZATION
        return decided

    def _wanted(self, fleet: Fleet) -> int:
        parts = [part for _, part in self._gathered]
        served, time = sum(p.completions for p in parts), sum(p.service_time_sum for p in parts)
        if not served:
            return fleet.ordered
        length = sum(p.interval for p in parts)
        return band_replicas(
            fleet.ordered,
            sum(p.arrivals for p in parts) / length,
            fleet.slots_per_replica * served / time,
            parts[-1].queue_depth,
            self._target,
            self._boundary,
        )

    def _delayed(self, wanted: int, replicas: int, now: float) -> int:
        """A step down is taken after an hour of asking, and only as far as the greatest count asked for."""
        if wanted >= replicas:
            self._down_asked_at = None
            return wanted
        if self._down_asked_at is None:
            self._down_asked_at, self._down_highest = now, wanted
        self._down_highest = max(self._down_highest, wanted)
        if now - self._down_asked_at < SCALE_DOWN_INTERVAL:
            return replicas
        self._down_asked_at = None
        return self._down_highest
