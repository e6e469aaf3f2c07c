"""The bar that others must clear: the last value, the same time last season, a moving level."""

import math

import numpy as np

from forecasting.distribution import Array
from forecasting.horizon_errors import Steps
from forecasting.point_forecaster import PointForecaster

NAN = math.nan


class Persistence(PointForecaster):
    """Tomorrow is as now: every step ahead is the last count that was known.

    Its error grows with the horizon as counts that far apart have differed.
    """

    def __init__(self) -> None:
        self.last_ = NAN
        super().__init__()

    def _start(self, history: Array) -> Array:
        self.last_ = NAN
        return history

    def _learn(self, count: float, bound: float) -> None:
        if not math.isnan(count):
            self.last_ = count

    def _points(self, steps: Steps) -> Array:
        return np.full(len(steps), self.last_)


class Level(PointForecaster):
    """An exponentially weighted mean of the counts: for as long as nothing is known of seasons.

    Parameters
    ----------
    half_life : float
        Intervals after which a count weighs half, > 0. Longer is calmer, and later at a change.

    Notes
    -----
    level = Σ w y / Σ w with w = 2^(-age/half_life): right from the first count on, and a gap does not
    move it.
    """

    def __init__(self, half_life: float = 3.0) -> None:
        if not 0 < half_life < np.inf:
            raise ValueError(f"need a half_life > 0 intervals, got {half_life}")
        self.half_life = half_life
        self.level_ = NAN
        self.weight_ = 0.0
        super().__init__()

    def _start(self, history: Array) -> Array:
        self.level_, self.weight_ = NAN, 0.0
        return history

    def _learn(self, count: float, bound: float) -> None:
        self.weight_ *= 0.5 ** (1 / self.half_life)
        if not math.isnan(count):
            self.weight_ += 1.0
            base = count if math.isnan(self.level_) else self.level_
            self.level_ = base + (count - base) / self.weight_

    def _points(self, steps: Steps) -> Array:
        return np.full(len(steps), self.level_)


class SeasonalNaive(PointForecaster):
    """Each step ahead is the count of the same time in the last season in which it was known.

    Parameters
    ----------
    season_length : int
        Intervals in a season, >= 2: 288 for a day of five minutes.
    """

    def __init__(self, season_length: int) -> None:
        if season_length < 2:
            raise ValueError(f"need season_length >= 2 intervals, got {season_length}")
        self.season_length = season_length
        self.phase_ = 0
        self.season_ = np.full(season_length, NAN)
        super().__init__()

    def _history_max(self) -> int:
        return max(super()._history_max(), 3 * self.season_length)

    def _start(self, history: Array) -> Array:
        if len(history) < self.season_length:
            raise ValueError(
                f"need a season of {self.season_length} counts, got {len(history)}; use Level until then"
            )
        self.phase_, self.season_ = 0, history[: self.season_length].copy()
        return history[self.season_length :]

    def _learn(self, count: float, bound: float) -> None:
        if not math.isnan(count):
            self.season_[self.phase_] = count
        self.phase_ = (self.phase_ + 1) % self.season_length

    def _points(self, steps: Steps) -> Array:
        points: Array = self.season_[(self.phase_ + steps - 1) % self.season_length]
        unknown = np.isnan(points)
        if unknown.any() and not np.isnan(self.season_).all():
            points[unknown] = np.nanmean(self.season_)
        return points
