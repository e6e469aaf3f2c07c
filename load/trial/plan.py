"""What is to be done: the load over time, what it needs, and the times everything takes. Pure.

The load is Poisson at a rate that goes in straight lines between points: low, up, high, down, low. What it
needs is what somebody would order who knew that rate: the fewest replicas that keep the wait objective
(M/M/c) and the upper edge of the band at once.
"""

from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from autoscaler.queueing.staffing import servers_for_wait
from autoscaler.queueing.utilization_band import servers_for_utilization
from load.arrivals import varying


@dataclass(frozen=True)
class Trial:
    """One trial; times in seconds.

    Attributes
    ----------
    seconds : float
        How long there is load; the rest follows from it.
    rate_low, rate_high : float
        Arrivals [1/s].
    service, load_time : float
        Mean service time of a request, and time until a server that was started is ready.
    slots : int
        Of one replica [1].
    wait, quantile, utilization_low, utilization_high : float
        The objective.
    replicas_min, replicas_max : int
        Of the fleet [1].
    scrape, window, carry, hold : float
        Between two scrapes; over which rates are taken; how long what was read last is believed; how long
        fewer must have sufficed.
    away : float
        How long Prometheus is away: longer than it is believed.
    through_prometheus : bool
        Whether the controllers ask it; if not, they ask the sidecars.
    """

    seconds: float = 360.0
    rate_low: float = 8.0
    rate_high: float = 40.0
    service: float = 0.4
    load_time: float = 2.0
    slots: int = 4
    wait: float = 1.0
    quantile: float = 0.95
    utilization_low: float = 0.5
    utilization_high: float = 0.75
    replicas_min: int = 3
    replicas_max: int = 10
    scrape: float = 1.0
    window: float = 10.0
    carry: float = 6.0
    hold: float = 15.0
    away: float = 25.0
    control_interval: float = 2.0
    through_prometheus: bool = True
    seed: int = 1

    @property
    def knots(self) -> tuple[tuple[float, float], ...]:
        """Time [s] and rate [1/s] where the slope changes."""
        low, high = self.rate_low, self.rate_high
        shares = ((0.0, low), (0.12, low), (0.27, high), (0.72, high), (0.80, low), (1.0, low))
        return tuple((share * self.seconds, rate) for share, rate in shares)

    @property
    def peak(self) -> tuple[float, float]:
        """When the rate is at its highest [s]."""
        return self.knots[2][0], self.knots[3][0]

    @property
    def lag(self) -> float:
        """How late the program may be [s]: twice half a window, a scrape, a look and a decision."""
        return 2 * (self.window / 2 + self.scrape + 2 * self.control_interval)

    def rate(self, time: np.ndarray) -> np.ndarray:
        """Return λ [1/s] at the times given [s]."""
        times, rates = zip(*self.knots, strict=True)
        return np.interp(time, times, rates)

    def arrivals(self) -> np.ndarray:
        """Return when requests come, shape (n,) [s]."""
        return varying(self.rate, self.rate_high, self.seconds, np.random.default_rng(self.seed))

    def offered_load(self, time: float) -> float:
        """Return the servers that the load at `time` [s] keeps busy [erlang]."""
        return float(self.rate(np.array(time))) * self.service

    def needed(self, time: float) -> int:
        """Return the fewest replicas that the load at `time` [s] needs, within the limits [1]."""
        return self.needed_at(float(self.rate(np.array(time))))

    def needed_at(self, rate: float) -> int:
        """Return the fewest replicas that `rate` [1/s] needs, within the limits [1]."""
        for_wait = servers_for_wait(rate, self.service, self.wait, self.quantile)
        for_band = servers_for_utilization(rate * self.service, self.utilization_high)
        return self._within_limits(ceil(max(for_wait, for_band) / self.slots))

    def most(self, time: float) -> int:
        """Return the most that are not too many for it by the lower edge of the band [1]."""
        fits = floor(self.offered_load(time) / self.utilization_low / self.slots)
        return self._within_limits(max(self.needed(time), fits))

    def _within_limits(self, replicas: int) -> int:
        return min(self.replicas_max, max(self.replicas_min, replicas))

    def least_within(self, since: float, until: float) -> int:
        """Return what was needed at every time between two [s], within the limits [1]."""
        return min(map(self.needed, self._between(since, until)))

    def most_within(self, since: float, until: float) -> int:
        """Return what was not too many at some time between two [s], within the limits [1]."""
        return max(map(self.most, self._between(since, until)))

    def _between(self, since: float, until: float) -> list[float]:
        return np.linspace(max(0.0, since), min(until, self.seconds), 25).tolist()
