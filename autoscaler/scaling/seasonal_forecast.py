"""What this time of day is like: a fitted forecaster, and the arrivals that it learns from.

Arrivals are kept in bins of some minutes. Once there is a season of them a fit is due, and others follow;
between two the forecaster learns each bin as it closes. Fits take seconds, so they are handed out as jobs
and never run here. Between the centres of bins the rate is a straight line.
"""

import pickle
from collections.abc import Callable
from functools import partial
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from autoscaler.scaling.arrival_history import ArrivalHistory
from autoscaler.scaling.fit import Fitted, fit
from autoscaler.scaling.options import DecisionPolicy
from forecasting.distribution import PredictiveDistribution
from forecasting.forecaster import Forecaster
from forecasting.series import Series

_REFIT_SHARE, _REFIT_MIN = 1 / 20, 12.0
"""A fit is due again after this share of what is known, and after so many bins at least."""
_SPREAD_UNKNOWN = 0.15
"""How far off the forecast of nothing is taken to be [1]."""
_SPREAD_MAX = 0.3
"""A forecast that knows a season or two may doubt itself more [1]; but the nowcast corrects it meanwhile."""


class SeasonalForecast:
    """The expected rate by calendar time, or none before a season is known."""

    def __init__(self, policy: DecisionPolicy, forecaster: Forecaster) -> None:
        self._policy = policy
        self._template = pickle.dumps(forecaster)
        self._history = ArrivalHistory(policy.forecast_interval, policy.history_bins)
        self._closed = 0  # bins closed so far
        self._forecaster: Forecaster | None = None
        self._path: NDArray[np.float64] = np.empty(0)  # counts: of the bin before the open one, and on
        self._spreads: NDArray[np.float64] = np.empty(0)  # of the open bin and on, relative
        self._fit_asked_at: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is a forecast."""
        return self._forecaster is not None

    def add(self, arrivals: float, interval: float, end_wall_time: float) -> None:
        """Take in what came in the `interval` [s] before `end_wall_time` [s since the epoch]."""
        closed = self._history.add(arrivals, interval, end_wall_time)
        self._closed += len(closed)
        if self._forecaster is None:
            return
        for count in closed:
            self._forecaster.update(count)
            self._look_ahead(before=float(self._path[1]))

    def rates(self, wall_times: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the expected rates at calendar times, shape (n,) [1/s]; None if there is no forecast."""
        if self._forecaster is None or self._history.open_bin is None:
            return None
        places = wall_times / self._policy.forecast_interval - 0.5 - self._history.open_bin
        last = ceil(float(places.max()))
        if last + 1 >= len(self._path):
            self._look_ahead(before=float(self._path[0]), bins=2 * last + 2)
        counts = np.interp(places + 1, np.arange(len(self._path)), self._path)
        return np.asarray(counts / self._policy.forecast_interval)

    def spread(self, wall_time: float) -> float:
        """Relative standard deviation of the rate at a calendar time, as the forecast states it [1]."""
        if self._forecaster is None or self._history.open_bin is None:
            return _SPREAD_UNKNOWN
        place = wall_time / self._policy.forecast_interval - 0.5 - self._history.open_bin
        return float(np.interp(place, np.arange(len(self._spreads)), self._spreads))

    def refit_due(self, now: float) -> Callable[[], Fitted] | None:
        """Hand out a fit if one is due at `now` [s]: a picklable callable without arguments."""
        bins = len(self._history)
        if bins < self._policy.season_length:
            return None
        soon = max(_REFIT_SHARE * bins, _REFIT_MIN) * self._policy.forecast_interval
        wait = min(soon, self._policy.refit_interval)
        if self._fit_asked_at is not None and now - self._fit_asked_at < wait:
            return None
        self._fit_asked_at = now
        return partial(fit, self._template, self._series(), self._closed)

    def adopt(self, fitted: Fitted) -> None:
        """Take over what a fit learned, and show it the bins that have closed since it began."""
        if fitted.forecaster is None:
            return
        self._forecaster = fitted.forecaster
        missed = self._closed - fitted.until
        if missed > 0:
            for count in self._history.counts()[-missed:]:
                self._forecaster.update(float(count))
        self._look_ahead(before=float(self._path[0]) if len(self._path) else None)

    def _series(self) -> Series:
        counts, interval = self._history.counts(), self._policy.forecast_interval
        return Series(counts, interval, ((self._history.open_bin or 0) - len(counts)) * interval)

    def _look_ahead(self, before: float | None, bins: int = 4) -> None:
        """Ask for at least `bins` bins from the open one on; `before` is what the one before was expected."""
        if self._forecaster is None:
            return
        steps = self._forecaster.forecast(max(bins, len(self._spreads)))
        counts = [max(0.0, step.mean) for step in steps]
        self._path = np.array([counts[0] if before is None else before, *counts])
        self._spreads = np.array([_relative_spread(step) for step in steps])


def _relative_spread(step: PredictiveDistribution) -> float:
    """Standard deviation of the rate / mean, without the Poisson noise of a count [1]."""
    if step.mean <= 0:
        return _SPREAD_UNKNOWN
    return min(sqrt(max(0.0, step.variance - step.mean)) / step.mean, _SPREAD_MAX)
