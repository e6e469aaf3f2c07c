"""What is replayed: demand, the law of service, how replicas start and fail, and what is wanted.

Arrivals of a series are spread evenly at random within each of its intervals. What each request needs is
its work: its own time of service, or tokens to be made, both lognormal; in batches all need the same. Times
and work are drawn before the replay begins, so that every policy meets the very same requests.
"""

from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Objective
from autoscaler.errors import UsageError
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.units import format_duration

Floats = NDArray[np.float64]

REQUESTS_MAX = 50_000_000
"""Of one replay; the times of all of them are drawn beforehand."""
INTERVALS_MAX = 5_000_000
"""Of the series, and between decisions: at one every 10 s, a year and a half."""
START_TIME_MIN = 1.0
"""No replica starts faster [s]."""
_NORMAL_P90 = 1.2816


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
        Of the lognormal law of service [s], [1]. With batching, what is expected of a full replica; it
        is told to policies, and no service follows it.
    slots_per_replica : int
        [1].
    cold_start_mean, cold_start_cv : float
        Of the normal law of starts, at least 1 s [s], [1].
    objective : Objective
        Wait and band.
    control_interval : float
        Between decisions of policies without an interval of their own, and between ticks of a record [s].
    replicas_initial : int
        Ready when the replay begins [1].
    history : ndarray, shape (n_history,)
        Requests in each interval of `history_interval` before the replay, oldest first.
    history_interval : float
        [s].
    cold_starts : ndarray, shape (n_starts,)
        Starts as measured [s]. Where there are any, each start is one of them at random, instead of normal.
    batching : BatchLine, StepLine or None
        None: each request has its own time. A line of batches: a replica serves up to `slots_per_replica`
        requests at once. A line of steps: continuous batching, with so many requests in a replica at most.
    supply_max : int or None
        So many replicas can exist, in whatever state [1]; None: as many as are ordered.
    supply_changes : tuple of (float, int)
        From each of these times [s] on another number of replicas can exist [1].
    interruption_rate : float
        At which each ready or draining replica is lost, without notice [1/s]: spot machines, faults.
    warm_up, warm_up_slowness : float
        For so long after its start a replica needs this factor longer for everything [s], [1].
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
    cold_starts: Floats = field(default_factory=lambda: np.empty(0))
    batching: BatchLine | StepLine | None = None
    supply_max: int | None = None
    supply_changes: tuple[tuple[float, int], ...] = ()
    interruption_rate: float = 0.0
    warm_up: float = 0.0
    warm_up_slowness: float = 1.0

    def __post_init__(self) -> None:
        if self.supply_max is not None and self.supply_max < 1:
            raise ValueError(f"need supply_max >= 1 replicas, or none for no limit, got {self.supply_max}")
        if min(self.interruption_rate, self.warm_up) < 0 or self.warm_up_slowness < 1:
            raise ValueError(
                "need interruption_rate, warm_up >= 0 and warm_up_slowness >= 1, "
                f"got {self.interruption_rate}, {self.warm_up}, {self.warm_up_slowness}"
            )

    @property
    def duration(self) -> float:
        """Length of the demand [s]."""
        return len(self.counts) * self.interval

    def starting_with(self, replicas: int) -> "Scenario":
        """Return the same with so many replicas ready at first."""
        return replace(self, replicas_initial=replicas)

    def batched(self, line: BatchLine | StepLine) -> "Scenario":
        """Return the same with service in batches, or with continuous batching, by this line."""
        mean, scv = (1.0, 0.0) if isinstance(line, BatchLine) else (line.tokens_out, line.tokens_out_scv)
        full = replace(self, batching=line).time_per_work(self.slots_per_replica)
        return replace(self, batching=line, service_time_mean=mean * full, service_scv=scv)

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
                f"a history of {format_duration(history)} leaves nothing to replay of "
                f"{format_duration(self.duration)}; shorten it"
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

    def work(self, n_requests: int, rng: np.random.Generator) -> Floats:
        """What each request needs, shape (n_requests,): seconds, tokens, or 1 in batches."""
        match self.batching:
            case None:
                return self.service_times(n_requests, rng)
            case BatchLine():
                return np.ones(n_requests)
            case StepLine(tokens_out=mean, tokens_out_scv=scv):
                return np.maximum(1.0, np.rint(_lognormal(mean, scv, n_requests, rng)))

    def time_per_work(self, requests: int) -> float:
        """Return the time that one unit of work takes in a replica with so many requests, >= 1 [s]."""
        match self.batching:
            case None:
                return 1.0
            case BatchLine():
                return float(self.batching.service_time(requests))
            case StepLine():
                return float(self.batching.time_per_token(requests))

    def service_times(self, n_requests: int, rng: np.random.Generator) -> Floats:
        """Times of service of requests that have their own [s], shape (n_requests,)."""
        return _lognormal(self.service_time_mean, self.service_scv, n_requests, rng)

    @property
    def start_time_mean(self) -> float:
        """Of starts [s]."""
        return float(self.cold_starts.mean()) if len(self.cold_starts) else self.cold_start_mean

    @property
    def start_time_p90(self) -> float:
        """0.9 quantile of starts [s]."""
        if len(self.cold_starts):
            return float(np.quantile(self.cold_starts, 0.9))
        return self.cold_start_mean * (1 + _NORMAL_P90 * self.cold_start_cv)

    def start_time(self, rng: np.random.Generator) -> float:
        """Draw the time that one replica takes to start [s]."""
        if len(self.cold_starts):
            drawn = float(rng.choice(self.cold_starts))
        else:
            drawn = float(rng.normal(self.cold_start_mean, self.cold_start_cv * self.cold_start_mean))
        return max(START_TIME_MIN, drawn)


def _lognormal(mean: float, scv: float, size: int, rng: np.random.Generator) -> Floats:
    """Draw from the law of this mean and squared coefficient of variation; a constant if that is 0."""
    if scv == 0:
        return np.full(size, mean)
    sigma = sqrt(log(1 + scv))
    return rng.lognormal(log(mean) - sigma**2 / 2, sigma, size)
