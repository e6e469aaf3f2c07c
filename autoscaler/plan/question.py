"""What is asked: a demand, how it is served, what is wanted, and what a replica costs."""

from dataclasses import dataclass, field

from autoscaler.domain import Objective
from autoscaler.plan.service import Queue, Service

_DEFAULTS = Objective()
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class WaitBound:
    """A wait objective: a quantile of the wait, or its mean, shall be no longer than `seconds`.

    Attributes
    ----------
    seconds : float
        >= 0 [s].
    quantile : float or None
        In (0, 1) [1]; None is the mean.
    """

    seconds: float = _DEFAULTS.wait_seconds
    quantile: float | None = _DEFAULTS.wait_quantile

    def __str__(self) -> str:
        return "mean" if self.quantile is None else f"p{100 * self.quantile:.10g}"

    def of(self, queue: Queue) -> float:
        """The wait [s] that the bound is about."""
        return queue.wait_mean if self.quantile is None else queue.wait_quantile(self.quantile)

    def is_kept_by(self, queue: Queue) -> bool:
        """Whether `queue` keeps it."""
        if self.quantile is None:
            return queue.wait_mean <= self.seconds
        return queue.wait_tail(self.seconds) <= 1.0 - self.quantile


@dataclass(frozen=True, slots=True)
class Band:
    """The utilization wanted, 0 < low < high <= 1 [1]."""

    low: float = _DEFAULTS.utilization_low
    high: float = _DEFAULTS.utilization_high

    def has_room_above(self, utilization: float) -> bool:
        """Whether it is not too busy."""
        return utilization <= self.high * (1.0 + _TINY)

    def is_busy_enough(self, utilization: float) -> bool:
        """Whether it is not too idle."""
        return utilization >= self.low * (1.0 - _TINY)

    def holds(self, utilization: float) -> bool:
        """Whether `utilization` lies in the band."""
        return self.has_room_above(utilization) and self.is_busy_enough(utilization)


@dataclass(frozen=True, slots=True)
class Question:
    """How many replicas?

    Attributes
    ----------
    arrival_rate : float
        > 0 [1/s].
    service : Service
        How they serve.
    wait : WaitBound
        The wait objective.
    band : Band
        The utilization wanted.
    replicas_min, replicas_max : int
        Bounds [1]; no upper one if None.
    price : float or None
        Of a replica for an hour; None counts replica-hours.
    currency : str
        What the price is in.
    """

    arrival_rate: float
    service: Service
    wait: WaitBound = field(default_factory=WaitBound)
    band: Band = field(default_factory=Band)
    replicas_min: int = 1
    replicas_max: int | None = None
    price: float | None = None
    currency: str = ""

    def cost_per_hour(self, replicas: int) -> float:
        """Cost of so many replicas, in the currency, or in replica-hours if there is no price."""
        return replicas * (1.0 if self.price is None else self.price)
