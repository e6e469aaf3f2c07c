"""KEDA: an HPA between one and many, and a switch between none and one.

Restated from `pkg/scaling` of kedacore/keda, with the defaults documented for 2.22. The operator asks its
trigger every 30 s whether there is any work: from zero replicas it then writes one; when there was none for
longer than the cooldown of 300 s it writes zero, in one step, whatever the count. Everything else is left
to an HPA on an external metric with an average value, which asks KEDA every 15 s, with the HPA's own
tolerance, limits and down window (`hpa.py`).

Two triggers. `concurrency`: a gauge of the requests in service and waiting, from Prometheus, as it was at
the last scrape (15 s ago) and not smoothed; a Prometheus trigger has no default threshold, so here it is
0.70 per slot. `queue`: as the trigger for SQS counts by default, messages waiting and in flight, seen at
once, 5 of them a replica, whatever a replica can do at a time.

Left out: `idleReplicaCount`, fallback, scaling modifiers, pausing, several triggers, the limit of 100
replicas.
"""

from math import inf
from typing import Literal

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.hpa import SYNC_PERIOD, Behavior, external_replicas
from autoscaler.replay.policies.signals import Lagged

POLLING_INTERVAL = 30.0  # s
COOLDOWN = 300.0  # s
SCRAPE = 15.0  # s
CONCURRENCY_TARGET = 0.70
QUEUE_LENGTH = 5.0  # messages a replica


def switched(replicas: int, active: bool, idle: float, minimum: int = 0) -> int | None:
    """Replicas that the operator itself writes, `idle` [s] after the last work; None leaves it to the HPA."""
    if active:
        return max(1, minimum) if replicas == 0 else None
    if replicas > 0 and minimum == 0 and idle > COOLDOWN:
        return 0
    return minimum if replicas < minimum else None


class KedaPolicy:
    """A ScaledObject with one trigger; `minimum` is its `minReplicaCount`."""

    interval: float | None = SYNC_PERIOD

    def __init__(
        self,
        target: float = CONCURRENCY_TARGET,
        trigger: Literal["concurrency", "queue"] = "concurrency",
        minimum: int = 0,
    ) -> None:
        self.name = f"keda {trigger} {target:.2f}"
        self._target = target
        self._per_slot = trigger == "concurrency"
        self._minimum = minimum
        self._metric: Lagged[int] = Lagged(SCRAPE if self._per_slot else 0.0)
        self._behavior = Behavior()
        self._polled_at = -inf
        self._last_active: float | None = None

    @classmethod
    def on_queue(cls, length: float = QUEUE_LENGTH) -> "KedaPolicy":
        """Scale on so many messages a replica."""
        return cls(length, "queue")

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int | None:
        """Replicas to write: by the switch if it is due and has something to say, else by the HPA."""
        seen = self._metric.put(observation.in_flight, now)
        if seen is None:
            return None
        if now - self._polled_at >= POLLING_INTERVAL:
            self._polled_at = now
            written = self._polled(seen > 0, fleet.ordered, now)
            if written is not None:
                return written
        if fleet.ordered == 0:
            return None  # an HPA is off while there are none
        target = self._target * (fleet.slots_per_replica if self._per_slot else 1)
        wanted = external_replicas(fleet.ordered, seen, target)
        return self._behavior.allowed(wanted, fleet.ordered, now, max(1, self._minimum))

    def _polled(self, active: bool, replicas: int, now: float) -> int | None:
        if active or self._last_active is None:
            self._last_active = now
        return switched(replicas, active, now - self._last_active, self._minimum)
