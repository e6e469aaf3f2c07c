"""What is replayed: demand, the law of service, how replicas start, and what is wanted.

Arrivals of a series are spread evenly at random within each of its intervals; services are lognormal.
Both are drawn before the replay begins, so that every policy meets the very same requests.
"""

from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Objective
from autoscaler.errors import UsageError

Floats = NDArray[np.float64]

REQUESTS_MAX = 50_000_000
"""Of one replay; the times of all of them are drawn beforehand."""
INTERVALS_MAX = 5_000_000
"""Of the series, and between decisions: at one every 10 s, a year and a half."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One pool's demand and circumstances.

    Attributes
    ----------
    counts : ndarray, shape (n_intervals,)
        Requests in each interval.
    interval : float
        Length of an interval [s].
    service_time_mean, service_scv : float
        Of the lognormal law of service [s], [1].
    slots_per_replica : int
        [1].
    cold_start_mean, cold_start_cv : float
        Of the normal law of starts, at least 1 s [s], [1].
    objective : Objective
        Wait and band.
    control_interval : float
        Between decisions [s].
    replicas_initial : int
        Ready when the replay begins [1].
    history : ndarray, shape (n_history,)
        Requests in each interval of `history_interval` before the replay, oldest first.
    history_interval : float
        [s].
    """

    counts: Floats
    interval: float
    service_time_mean: float
    service_scv: float = 1.0
    slots_per_replica: int = 1
    cold_start_mean: float = 120.0
    cold_start_cv: float = 0.25
    objective: Objective = field(default_factory=Objective)
    control_interval: float = 10.0
    replicas_initial: int = 1
    history: Floats = field(default_factory=lambda: np.empty(0))
    history_interval: float = 300.0

    @property
    def duration(self) -> float:
        """Length of the demand [s]."""
        return len(self.counts) * self.interval

    def starting_with(self, replicas: int) -> "Scenario":
        """Return the same with so many replicas ready at first."""
        return replace(self, replicas_initial=replicas)

    def learning_from(self, history: float) -> "Scenario":
        """Return a scenario in which the first `history` [s] of the demand are known beforehand.

        Raises
        ------
        UsageError
            If nothing would be left to replay.
        """
        known = round(history / self.interval)
        if known >= len(self.counts):
            raise UsageError(
                f"a history of {history:g} s leaves nothing to replay of {self.duration:g} s; shorten it"
            )
        counts, past = self.counts[known:], self.counts[:known]
        return replace(self, counts=counts, history=past, history_interval=self.interval)

    def check_size(self) -> None:
        """Raise UsageError if a replay would not end in any reasonable time."""
        requests, ticks = float(self.counts.sum()), self.duration / self.control_interval
        if requests > REQUESTS_MAX:
            raise UsageError(
                f"{requests:,.10g} requests are more than the {REQUESTS_MAX:,} that can be replayed; "
                "cut the series, or scale its counts down"
            )
        if max(len(self.counts), ticks) > INTERVALS_MAX:
            raise UsageError(
                f"{self.duration:,.10g} s in steps of {self.interval:,.6g} s, with a decision every "
                f"{self.control_interval:g} s, are more than the {INTERVALS_MAX:,} intervals that can be "
                "replayed; cut the series, or count in longer steps"
            )

    def arrival_times(self, rng: np.random.Generator) -> Floats:
        """Times of arrival, ascending [s], shape (n_requests,)."""
        counts = np.floor(self.counts + rng.random(len(self.counts))).astype(np.int64)
        starts = np.repeat(np.arange(len(counts)) * self.interval, counts)
        return np.sort(starts + self.interval * rng.random(len(starts)))

    def service_times(self, n_requests: int, rng: np.random.Generator) -> Floats:
        """Times of service [s], shape (n_requests,)."""
        if self.service_scv == 0:
            return np.full(n_requests, self.service_time_mean)
        sigma = sqrt(log(1 + self.service_scv))
        return rng.lognormal(log(self.service_time_mean) - sigma**2 / 2, sigma, n_requests)
