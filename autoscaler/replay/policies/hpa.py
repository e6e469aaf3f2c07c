"""Kubernetes' HorizontalPodAutoscaler: replicas in proportion to a metric, quick up, slow down.

Restated from `pkg/controller/podautoscaler` of kubernetes/kubernetes, API autoscaling/v2: every 15 s the
mean of a metric over the pods is divided by its target; within ±10 % nothing happens. Pods that are not
ready and pods whose metric is missing never start a move of their own: going up they count as using
nothing, going down the missing ones as using their target, and a move that turns around by it is not made.
Then the default behaviour: going down, the highest recommendation of the last 300 s rules; going up, at
most 4 pods or 100 % in 15 s.

The metric is concurrency per pod (`signals.py`): its mean over a minute, as people have prometheus-adapter
ask for it, 15 s late (a scrape), so that it is 45 s old on average. A pod that became ready since has no
metric yet. The default target is that of the API's default metric, 80 %.

Left out: several metrics at once (the largest wins), tolerance per direction (alpha), pods that fail.
"""

from collections import deque
from math import ceil

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.signals import Lagged, SlidingMean, concurrency

SYNC_PERIOD = 15.0  # s
TOLERANCE = 0.1
METRIC_WINDOW = 60.0  # s
METRIC_LAG = 15.0  # s
DOWN_WINDOW = 300.0  # s
RATE_PERIOD = 15.0  # s
PODS_PER_PERIOD = 4
GROWTH_PER_PERIOD = 2.0  # 100 % more
TARGET = 0.80


def pods_replicas(
    replicas: int, total: float, target: float, reporting: int, missing: int = 0, unready: int = 0
) -> int:
    """Replicas for a metric of type Pods.

    Parameters
    ----------
    replicas : int
        As they stand in the spec [1].
    total : float
        Sum of the metric over the pods that report it.
    target : float
        Of its average over the pods.
    reporting, missing, unready : int
        Pods that report it; ready ones that do not yet; pending ones [1].
    """
    if not reporting:
        return replicas
    usage = total / (reporting * target)
    rebalances = unready > 0 and usage > 1
    if not rebalances and not missing:
        return replicas if abs(1 - usage) <= TOLERANCE else _ceil(usage * reporting)
    counted = reporting + missing + (unready if rebalances else 0)
    with_missing = (total + (missing * target if usage < 1 else 0)) / (counted * target)
    turned = (usage < 1 < with_missing) or (usage > 1 > with_missing)
    if turned or abs(1 - with_missing) <= TOLERANCE:
        return replicas
    wanted = _ceil(with_missing * counted)
    against = (with_missing < 1 and wanted > replicas) or (with_missing > 1 and wanted < replicas)
    return replicas if against else wanted


def external_replicas(replicas: int, total: float, target: float) -> int:
    """Replicas for a metric of type External with an average value: a total that is shared by all pods."""
    if not replicas:
        return _ceil(total / target)
    if abs(1 - total / (target * replicas)) <= TOLERANCE:
        return replicas
    return _ceil(total / target)


def _ceil(value: float) -> int:
    """The original counts in thousandths, so that 4.2 / 0.7 is 6, not 6.000000000000001."""
    return ceil(round(value, 6))


class Behavior:
    """The default `behavior` of an HPA, between what the metric asks and what is written."""

    def __init__(self) -> None:
        self._recommended: deque[tuple[float, int]] | None = None
        self._changes: deque[tuple[float, int]] = deque()

    def allowed(self, wanted: int, replicas: int, now: float, minimum: int = 1) -> int:
        """Replicas to write at `now` [s], when the metric asks for `wanted` and the spec says `replicas`."""
        recommended = self._remembered(replicas, now)
        highest = max([wanted, *(value for _, value in recommended)])
        recommended.append((now, wanted))
        allowed = max(min(max(replicas, wanted), highest), minimum)
        if allowed > replicas:
            started_with = replicas - sum(change for _, change in self._changes)
            limit = max(started_with + PODS_PER_PERIOD, ceil(started_with * GROWTH_PER_PERIOD))
            allowed = min(allowed, max(limit, replicas))
        if allowed != replicas:
            self._changes.append((now, allowed - replicas))
        return allowed

    def _remembered(self, replicas: int, now: float) -> deque[tuple[float, int]]:
        """Recommendations of the window; whatever it finds at first is the first of them."""
        if self._recommended is None:
            self._recommended = deque([(now, replicas)])
        while self._recommended and self._recommended[0][0] <= now - DOWN_WINDOW:
            self._recommended.popleft()
        while self._changes and self._changes[0][0] <= now - RATE_PERIOD:
            self._changes.popleft()
        return self._recommended


class HpaPolicy:
    """An HPA on concurrency per pod, with the default behaviour."""

    interval: float | None = SYNC_PERIOD

    def __init__(self, target: float = TARGET) -> None:
        self.name = f"hpa {target:.2f}"
        self._target = target
        self._mean = SlidingMean(METRIC_WINDOW)
        self._metric: Lagged[tuple[float, int]] = Lagged(METRIC_LAG)
        self._behavior = Behavior()

    def wanted(self, observation: Observation, fleet: Fleet, now: float) -> int | None:
        """What the metric asks for [replicas]; None before there is a metric."""
        mean = self._mean.put(concurrency(observation), observation.interval, now)
        seen = self._metric.put((mean, fleet.ready), now)
        if seen is None:
            return None
        total, ready_then = seen
        return pods_replicas(
            fleet.ordered,
            total,
            self._target * fleet.slots_per_replica,
            reporting=min(ready_then, fleet.ready),
            missing=max(0, fleet.ready - ready_then),
            unready=fleet.starting,
        )

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int | None:
        """Replicas to write."""
        wanted = self.wanted(observation, fleet, now)
        return None if wanted is None else self._behavior.allowed(wanted, fleet.ordered, now)
