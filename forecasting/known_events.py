"""What is known beforehand: a launch, a holiday, the batch job of every night. Each multiplies the demand.

The forecaster inside never sees them: counts are divided by the factor before it learns, and its forecasts
are multiplied. So a launch does not become part of its profile, and the first one is forecast right too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from forecasting.cron import Cron
from forecasting.distribution import Array, PredictiveDistribution
from forecasting.forecaster import Forecaster, History, Stateful, checked_count, checked_history
from forecasting.series import Series

MINUTE = 60.0
BLOCK = 288
"""Intervals whose factors are worked out at a time."""


class Known(Protocol):
    """Something known beforehand."""

    factor: float

    def active(self, moments: Array) -> Array:
        """Return at which of `moments` [s since the epoch], a minute apart, it holds; 0 or 1, shape (n,)."""
        ...


@dataclass(frozen=True)
class Event(Stateful):
    """Something that happens once.

    Parameters
    ----------
    start, end : float
        Calendar time [s since the epoch], start < end.
    factor : float
        By how much it multiplies the demand, > 0: 3 triples it.
    """

    start: float
    end: float
    factor: float

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise ValueError(f"need an event to end after its start, got {self.start} to {self.end}")
        _check_factor(self.factor)

    def active(self, moments: Array) -> Array:
        """See `Known.active`."""
        return np.asarray((moments >= self.start) & (moments < self.end), dtype=float)


@dataclass(frozen=True)
class Schedule(Stateful):
    """Something that happens again and again.

    Parameters
    ----------
    cron : str
        When it begins, as five fields: minute, hour, day of month, month, weekday (0 = Sunday).
        "0 9 * * 1-5" is every working day at nine.
    duration : float
        How long it lasts, > 0 [s].
    factor : float
        By how much it multiplies the demand, > 0.
    zone : str
        Whose clock the fields are about.
    """

    cron: str
    duration: float
    factor: float
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if not 0 < self.duration < np.inf:
            raise ValueError(f"need a schedule's duration > 0 s, got {self.duration}")
        _check_factor(self.factor)
        Cron(self.cron, self.zone)

    def active(self, moments: Array) -> Array:
        """See `Known.active`."""
        minutes = int(np.ceil(self.duration / MINUTE))
        before = moments[0] - MINUTE * np.arange(minutes - 1, 0, -1)
        begins = Cron(self.cron, self.zone).matches(np.concatenate((before, moments)))
        begun = np.concatenate(([0.0], np.cumsum(begins)))
        return np.asarray(begun[minutes:] > begun[:-minutes], dtype=float)


class WithEvents(Forecaster):
    """A forecaster that knows what will happen.

    Parameters
    ----------
    forecaster : Forecaster
        What forecasts the demand without events.
    events : sequence of Event or Schedule
        Where several hold, their factors multiply.

    Notes
    -----
    `fit` needs a `Series`: events have a date.
    """

    def __init__(self, forecaster: Forecaster, events: Sequence[Known]) -> None:
        self.forecaster = forecaster
        self.events = list(events)
        self.interval_ = np.nan
        self.start_ = np.nan
        self.tick_ = 0
        self._block: tuple[int, Array] = (-1, np.empty(0))

    def fit(self, history: History) -> Self:
        """Learn from `history` without its events; see `Forecaster.fit`."""
        if not isinstance(history, Series):
            raise ValueError("events have a date, and an array has none; need a Series")
        checked_history(history)
        self.interval_, self.start_, self.tick_ = history.interval, history.start, len(history)
        self._block = (-1, np.empty(0))
        factors = self._factors(0, len(history))
        self.forecaster.fit(Series(history.values / factors, history.interval, history.start))
        return self

    def update(self, count: float) -> None:
        """Learn one count; see `Forecaster.update`."""
        self.forecaster.update(checked_count(count) / self._factor(self.tick_))
        self.tick_ += 1

    def forecast(self, horizon: int) -> list[PredictiveDistribution]:
        """Return what is said without events, times the factors; see `Forecaster.forecast`."""
        said = self.forecaster.forecast(horizon)
        factors = self._factors(self.tick_, self.tick_ + horizon)
        return [Scaled(each, factor) for each, factor in zip(said, factors.tolist(), strict=True)]

    def _factor(self, tick: int) -> float:
        block, factors = self._block
        if tick // BLOCK != block:
            block = tick // BLOCK
            factors = self._factors(block * BLOCK, (block + 1) * BLOCK)
            self._block = (block, factors)
        return float(factors[tick % BLOCK])

    def _factors(self, begin: int, end: int) -> Array:
        """Return by how much events multiply the demand of intervals begin … end - 1: means over minutes."""
        if np.isnan(self.start_):
            raise ValueError("WithEvents does not know what time it is; call fit with a Series")
        per_interval = max(round(self.interval_ / MINUTE), 1)
        apart = self.interval_ / per_interval
        begins = self.start_ + begin * self.interval_
        moments: Array = begins + apart * np.arange((end - begin) * per_interval, dtype=float)
        factors = np.ones(len(moments))
        for event in self.events:
            factors *= 1.0 + (event.factor - 1.0) * event.active(moments)
        return np.asarray(factors.reshape(end - begin, per_interval).mean(axis=1))


@dataclass(frozen=True, eq=False)
class Scaled(PredictiveDistribution):
    """The distribution of `factor` > 0 times a quantity."""

    base: PredictiveDistribution
    factor: float

    @property
    def mean(self) -> float:  # type: ignore[override]  # worked out, where others keep it
        """Finite, >= 0."""
        return self.base.mean * self.factor

    @property
    def variance(self) -> float:  # type: ignore[override]  # as above
        """Finite, >= 0."""
        return self.base.variance * self.factor**2

    @property
    def point(self) -> float:
        """As of the quantity, scaled."""
        return self.base.point * self.factor

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return `size` draws."""
        return self.base.sample(rng, size) * self.factor

    def _cdf(self, x: Array) -> Array:
        return self.base.cdf(x / self.factor)

    def _sf(self, x: Array) -> Array:
        return self.base.sf(x / self.factor)

    def _quantile(self, p: Array) -> Array:
        return self.base.quantile(p) * self.factor


def _check_factor(factor: float) -> None:
    if not 0 < factor < np.inf:
        raise ValueError(f"need a factor > 0, got {factor}; for no demand at all say 0.001")
