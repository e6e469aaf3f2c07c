"""What all forecasters share that say one number per step: their errors make it a distribution.

`fit` replays the history through `update`, so the errors were all made before their count was known,
and a forecaster that was fitted and one that lived through the same counts are the same.
"""

import math
from abc import abstractmethod
from typing import Self

import numpy as np

from forecasting.distribution import Array, PredictiveDistribution
from forecasting.forecaster import Forecaster, History, checked_count, checked_history
from forecasting.horizon_errors import STEPS, HorizonErrors, Steps
from forecasting.past_errors import PAST

HISTORY_MAX = 8064
"""Counts, the newest, that a fit looks at: four weeks of five minutes; three seasons if that is more."""


class PointForecaster(Forecaster):
    """A forecaster whose predictive distribution is its point and the errors of its points."""

    def __init__(self) -> None:
        self.errors_ = HorizonErrors()

    def fit(self, history: History) -> Self:
        """Forget, start from the oldest counts, and live through the rest; see `Forecaster.fit`."""
        counts = checked_history(history)[-self._history_max() :]
        self.errors_ = HorizonErrors(stride=max(math.ceil(len(counts) / PAST), 1))
        for count in self._start(counts).tolist():
            self._live(count)
        return self

    def update(self, count: float) -> None:
        """Learn one count; NaN = missing: its place in time passes. O(1)."""
        self._live(checked_count(count))

    def forecast(self, horizon: int) -> list[PredictiveDistribution]:
        """Return an empirical distribution per step; see `Forecaster.forecast`."""
        return self._ahead_of(horizon, 1)

    def at(self, step: int) -> PredictiveDistribution:
        """Return the distribution of the count `step` >= 1 intervals ahead alone; see `forecast`."""
        return self._ahead_of(step, step)[0]

    def _ahead_of(self, horizon: int, first: int) -> list[PredictiveDistribution]:
        if horizon < 1:
            raise ValueError(f"need horizon >= 1 step, got {horizon}")
        steps = np.arange(first, horizon + 1)
        points = self._points(steps)
        if np.isnan(points).any():
            raise ValueError(f"{type(self).__name__} has seen no count yet; call fit or update first")
        return list(self.errors_.distributions(points, steps))

    def _live(self, count: float) -> float:
        """Judge what was said of this count, learn it, say what is next; return the bound to its error."""
        bound = math.inf if math.isnan(count) else self.errors_.score(count)
        self._learn(count, bound)
        self.errors_.expect(self._points(STEPS))
        return bound

    def _history_max(self) -> int:
        return HISTORY_MAX

    @abstractmethod
    def _start(self, history: Array) -> Array:
        """Set the learned state to what `history` begins with; return the rest, to live through."""

    @abstractmethod
    def _learn(self, count: float, bound: float) -> None:
        """Learn one count (NaN = missing); an error beyond `bound` is not to be believed in full."""

    @abstractmethod
    def _points(self, steps: Steps) -> Array:
        """Return the point forecasts >= 0 at `steps` ahead, each >= 1; NaN if nothing is known."""
