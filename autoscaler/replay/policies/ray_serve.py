"""Ray Serve's autoscaler: ongoing requests over half a minute, acted on once asked for long enough.

Restated from `python/ray/serve/autoscaling_policy.py` of ray-project/ray, with the defaults documented
since 2.32. Replicas send how many requests they hold every 10 s, those queued at the handles included; the
mean of the last 30 s over the target gives an error ratio, whose distance to 1 is multiplied by a factor (1
by default). The count so found must differ in the same direction for 30 s going up and 600 s going down;
then the *last* one is taken, not the greatest of them nor the least.

The controller looks every 0.1 s; since its metric changes every 10 s, here it looks as often as that, which
decides the same within 0.1 s. Its defaults, a target of 2 ongoing requests of at most 5 a replica, are an
occupancy of 0.40 per slot.

Left out: the time that a start takes inside Ray, scaling to zero (its minimum is 1 by default), bounds.
"""

from math import ceil

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.signals import SlidingMean, concurrency

METRICS_INTERVAL = 10.0  # s
LOOK_BACK = 30.0  # s
UPSCALE_DELAY = 30.0  # s
DOWNSCALE_DELAY = 600.0  # s
TARGET = 2 / 5


def desired_replicas(
    ongoing: float, target: float, running: int, upscaling: float = 1.0, downscaling: float = 1.0
) -> int:
    """Replicas for so many ongoing requests in all, a target per replica, and gains up and down."""
    error = ongoing / (target * running)
    smoothed = 1 + (error - 1) * (upscaling if error >= 1 else downscaling)
    desired = ceil(round(running * smoothed, 9))
    stuck = desired == running and ceil(round(running * error, 9)) < running
    return desired - 1 if stuck else desired


class Delay:
    """Acts when asked in one direction more than so many times in a row; a change of mind starts anew."""

    def __init__(self, up_periods: int, down_periods: int) -> None:
        self._up, self._down = up_periods, down_periods
        self._count = 0

    def decided(self, desired: int, current: int) -> int:
        """Replicas after one more look."""
        if desired == current:
            self._count = 0
            return current
        up = desired > current
        self._count = (max(self._count, 0) + 1) if up else (min(self._count, 0) - 1)
        if (self._count > self._up) if up else (self._count < -self._down):
            self._count = 0
            return desired
        return current


class RayServePolicy:
    """A deployment with `target` ongoing requests per slot."""

    interval: float | None = METRICS_INTERVAL

    def __init__(self, target: float = TARGET, upscaling: float = 1.0, downscaling: float = 1.0) -> None:
        self.name = f"ray serve {target:.2f}"
        self._target = target
        self._gains = upscaling, downscaling
        self._ongoing = SlidingMean(LOOK_BACK)
        self._delay = Delay(int(UPSCALE_DELAY / METRICS_INTERVAL), int(DOWNSCALE_DELAY / METRICS_INTERVAL))

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int:
        """Replicas to run."""
        ongoing = self._ongoing.put(concurrency(observation), observation.interval, now)
        if not fleet.ready:
            return max(1, fleet.ordered)
        target = self._target * fleet.slots_per_replica
        desired = max(1, desired_replicas(ongoing, target, fleet.ready, *self._gains))
        return self._delay.decided(desired, fleet.ordered)
