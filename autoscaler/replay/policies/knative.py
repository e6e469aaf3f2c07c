"""Knative's pod autoscaler (KPA): concurrency over a stable minute, and a panic window of six seconds.

Restated from `pkg/autoscaler/scaling` of knative/serving, with the defaults of `config-autoscaler`. Every 2
s two averages of concurrency, over 60 s and over 6 s, are divided by the target, 70 % of what a container
takes at a time. When the short one asks for twice the ready pods or more, it panics: the larger of both
rules and the count never falls until a minute after. A step may go up to 1000 times and down to half the
ready pods. The last pod is kept for a grace of 30 s after the average has come to zero. An autoscaler that
finds more than one pod begins in panic, so that it does not shrink what it knows nothing of.

Concurrency is what the queue proxies and the activator count, waiting requests included; they are scraped
each second, so that here it is taken as seen at once.

Left out: burst capacity (it moves the activator into and out of the path, which changes no count),
activation scale, the scale-down delay (0 s by default), requests per second as the metric.
"""

from math import ceil, floor, inf

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.signals import SlidingMean, concurrency

TICK = 2.0  # s
STABLE_WINDOW = 60.0  # s
PANIC_WINDOW = 6.0  # s: 10 %
PANIC_THRESHOLD = 2.0
SCALE_UP_MAX = 1000.0
SCALE_DOWN_MAX = 2.0
GRACE = 30.0  # s
TARGET = 0.70


class Scaler:
    """The algorithm alone: two averages in, pods out."""

    def __init__(self, ready: int, now: float) -> None:
        self._panic_since: float | None = now if ready > 1 else None
        self._panic_pods = ready

    @property
    def panicking(self) -> bool:
        """Whether the count may only rise."""
        return self._panic_since is not None

    def desired(self, stable: float, panic: float, target: float, ready: int, now: float) -> int:
        """Pods for averages over the stable and the panic window [requests] and a target per pod."""
        pods = max(1, ready)
        lowest, highest = floor(pods / SCALE_DOWN_MAX), ceil(SCALE_UP_MAX * pods)
        asked_stable, asked_panic = (ceil(round(value / target, 9)) for value in (stable, panic))
        self._panic(asked_panic / pods >= PANIC_THRESHOLD, now)
        desired = min(max(asked_stable, lowest), highest)
        if self.panicking:
            self._panic_pods = max(self._panic_pods, desired, min(max(asked_panic, lowest), highest))
            return self._panic_pods
        return desired

    def _panic(self, over: bool, now: float) -> None:
        if over:
            self._panic_since = now
        elif self._panic_since is not None and self._panic_since + STABLE_WINDOW < now:
            self._panic_since, self._panic_pods = None, 0


class KnativePolicy:
    """A revision of which a pod serves `slots_per_replica` requests at a time."""

    interval: float | None = TICK

    def __init__(self, target: float = TARGET) -> None:
        self.name = f"knative {target:.2f}"
        self._target = target
        self._stable, self._panic = SlidingMean(STABLE_WINDOW), SlidingMean(PANIC_WINDOW)
        self._scaler: Scaler | None = None
        self._idle_since = inf

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int:
        """Pods to write."""
        if self._scaler is None:
            self._scaler = Scaler(fleet.ready, now)
        value = concurrency(observation)
        desired = self._scaler.desired(
            self._stable.put(value, observation.interval, now),
            self._panic.put(value, observation.interval, now),
            self._target * fleet.slots_per_replica,
            fleet.ready,
            now,
        )
        return self._with_grace(desired, now)

    def _with_grace(self, desired: int, now: float) -> int:
        self._idle_since = min(self._idle_since, now) if desired == 0 else inf
        return 1 if desired == 0 and now - self._idle_since < GRACE else desired
