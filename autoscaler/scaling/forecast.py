"""Demand one lead time ahead, as a distribution.

Three layers, each correcting the one before. A *seasonal forecast* says what this time of day is like;
there is none until a season is known, and the mean over a longer while takes its place. The *nowcast*
compares it with the last minutes: the forecast is the prior, the counts are the data, so that Poisson
noise is ignored and a wrong forecast is overruled. The *lead error* is how far off all this has been, one
lead time ahead: the law of came / predicted, which spreads the one number into a distribution.

The forecast is of demand, which users make; never of replicas, which we make ourselves. Fits take
seconds, so they are handed out as jobs and never run here.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, exp

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Observation
from autoscaler.scaling.arrival_history import ArrivalHistory
from autoscaler.scaling.lead_error import LeadError
from autoscaler.scaling.options import DecisionPolicy
from autoscaler.scaling.size import RateLaw
from forecasting.forecaster import Forecaster
from forecasting.nowcast import Nowcast

_NOWCAST_INTERVALS = 12  # control intervals that the nowcast looks back: two minutes at 10 s
_CALM_WINDOWS = 5  # of the nowcast's, over which the mean is taken while no season is known
_FORECAST_CV = 0.2  # how far a seasonal forecast is trusted before it has been judged
_ERROR_PRIOR_CV = 0.15
_ERROR_PRIOR_LEAD_TIMES = 50.0  # of watching; a tail cannot be known from a few
_ERROR_MEMORY_SEASONS = 2.0
_PEAK_POINTS = 8
_REBASE_MAX = 2.0
_CONTRADICTING, _CONTRADICTING_MIN = 2.0, 10.0  # times what is explained, and at least so many requests


@dataclass(frozen=True, slots=True)
class Demand:
    """The arrival rate ahead.

    Attributes
    ----------
    lead : RateLaw
        One lead time from now: the first moment that a decision of now can serve.
    peak : RateLaw
        At the busiest moment of [now, now + lead time + hold].
    """

    lead: RateLaw
    peak: RateLaw


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit gave: a forecaster that has learned up to bin `until`, or why there is none."""

    forecaster: Forecaster | None
    until: int
    failure: str = ""


def fit(template: bytes, history: NDArray[np.float64], until: int) -> Fitted:
    """Fit a forecaster, given as a pickle, on `history`, shape (n,); runs anywhere, also elsewhere."""
    try:
        return Fitted(pickle.loads(template).fit(history), until)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Fitted(None, until, str(error))


class DemandForecast:
    """Keeps what came, and predicts what will come."""

    def __init__(self, policy: DecisionPolicy, forecaster: Forecaster) -> None:
        self._policy = policy
        self._template = pickle.dumps(forecaster)
        self._history = ArrivalHistory(policy.forecast_interval, policy.history_bins)
        self._closed = 0  # bins closed so far
        self._forecaster: Forecaster | None = None
        self._path: NDArray[np.float64] = np.empty(0)  # counts predicted for the open bin and those after
        self._before = 0.0  # count predicted for the bin before the open one
        self._calm = _CalmRate()
        self._nowcast: Nowcast | None = None
        self._error = LeadError(_ERROR_PRIOR_CV, _ERROR_MEMORY_SEASONS * policy.season)
        self._wall_time = 0.0
        self._fit_asked_at: float | None = None

    def warm(self, counts: NDArray[np.float64], interval: float, end_wall_time: float) -> None:
        """Take in `counts` per `interval` [s] before `end_wall_time`, oldest first; NaN is missing."""
        for place, count in enumerate(counts):
            if not np.isnan(count):
                self._add(float(count), interval, end_wall_time - (len(counts) - 1 - place) * interval)

    def update(self, observation: Observation | None, now: float, elapsed: float) -> None:
        """Take in one interval; None for one that was lost, of `elapsed` [s]."""
        if observation is None:
            self._wall_time += elapsed
            self._error.lost()
            return
        self._wall_time = observation.wall_time
        memory = _NOWCAST_INTERVALS * observation.interval
        if self._nowcast is None:
            self._nowcast = Nowcast(prior_cv=_FORECAST_CV, memory=memory)
        expected = self._expected_rate(observation.wall_time - observation.interval / 2)
        self._nowcast.update(
            observation.arrivals,
            None if expected is None else expected * observation.interval,
            observation.interval,
        )
        # A surprise ends the calm that the mean was taken over; another begins with what came since.
        overruling = self._nowcast.rate.mean if self._nowcast.overruled else None
        revised = self._calm.update(observation, _CALM_WINDOWS * memory, overruling)
        if self._forecaster is None and expected is not None:
            seen, explained = self._nowcast.matched_, self._nowcast.expected_
            if overruling is None:
                self._rebase(revised)
            elif seen > 0 and explained > 0:
                self._nowcast.rebase(seen / explained)  # the new mean explains what has surprised
        self._add(observation.arrivals, observation.interval, observation.wall_time)

    def learn_error(self, observation: Observation, lead_time: float, now: float) -> None:
        """Judge the predictions that are due now, and remember the one for a lead time ahead."""
        window = max(4 * observation.interval, lead_time / 2)
        self._error.came(observation.arrivals, observation.interval, now, window)
        self._error.predict(self._rate(self._wall_time + lead_time), now + lead_time)

    def demand(self, lead_time: float, hold: float) -> Demand:
        """Predict the demand of the times that a decision of now is about."""
        ratios, weights = self._error.ratios(_ERROR_PRIOR_LEAD_TIMES * lead_time)
        lead = self._rate(self._wall_time + lead_time)
        ahead = np.linspace(0.0, lead_time + hold, _PEAK_POINTS)
        peak = max(lead, *(self._rate(self._wall_time + float(later)) for later in ahead))
        return Demand(_law(lead, ratios, weights), _law(peak, ratios, weights))

    def refit_due(self, now: float) -> Callable[[], Fitted] | None:
        """Hand out the next fit, if one is due: a picklable callable without arguments."""
        if len(self._history) < self._policy.season_length:
            return None
        if self._fit_asked_at is not None and now - self._fit_asked_at < self._policy.refit_interval:
            return None
        self._fit_asked_at = now
        return partial(fit, self._template, self._history.counts(), self._closed)

    def adopt(self, fitted: Fitted) -> None:
        """Take over what a fit learned, and show it the bins that have closed since it began."""
        if fitted.forecaster is None:
            return
        self._forecaster = fitted.forecaster
        missed = self._closed - fitted.until
        if missed > 0:
            for count in self._history.counts()[-missed:]:
                self._forecaster.update(float(count))
        self._look_ahead()

    def _add(self, arrivals: float, interval: float, end_wall_time: float) -> None:
        said = self._expected_rate(end_wall_time)
        closed = self._history.add(arrivals, interval, end_wall_time)
        self._closed += len(closed)
        if not closed or self._forecaster is None:
            return
        for count in closed:
            self._before = float(self._path[0])
            self._forecaster.update(count)
            self._look_ahead()
        says = self._expected_rate(end_wall_time)
        if said and says:
            self._rebase(says / said)

    def _look_ahead(self, bins: int = 4) -> None:
        """Ask the forecaster for at least `bins` bins from the open one on."""
        if self._forecaster is not None:
            steps = self._forecaster.forecast(max(bins, len(self._path)))
            self._path = np.array([max(0.0, step.mean) for step in steps])

    def _expected_rate(self, wall_time: float) -> float | None:
        """What is expected at a time, before the nowcast [1/s]; None if nothing is known."""
        open_bin = self._history.open_bin
        if self._forecaster is None or open_bin is None:
            return self._calm.rate
        place = wall_time / self._policy.forecast_interval - 0.5 - open_bin
        if ceil(place) >= len(self._path):
            self._look_ahead(2 * ceil(place) + 2)
        points = np.concatenate(([self._before or self._path[0]], self._path))
        counts = np.interp(place + 1, np.arange(len(points)), points)  # straight lines between bin centres
        return float(counts) / self._policy.forecast_interval

    def _rebase(self, factor: float) -> None:
        """Tell the nowcast that the forecast has learned what it knew already.

        One more bin moves a forecast little. Where it was next to nothing and is something now, the factor is
        without bounds and would void all that the nowcast has seen.
        """
        if self._nowcast is not None:
            self._nowcast.rebase(min(max(factor, 1 / _REBASE_MAX), _REBASE_MAX))

    def _rate(self, wall_time: float) -> float:
        """Forecast and nowcast together [1/s].

        What overrules a forecast is added to it: a surge at night does not multiply the day. Else, and
        where less comes, the ratio says more.
        """
        if self._nowcast is None:
            return 0.0
        expected, expected_now = self._expected_rate(wall_time), self._expected_rate(self._wall_time)
        if expected is None or expected_now is None:
            return self._nowcast.rate.mean
        ratio, rate_now = self._nowcast.ratio.mean, self._nowcast.rate.mean
        if self._nowcast.overruled:
            if rate_now > expected_now:
                return expected + rate_now - expected_now
            ratio = rate_now / expected_now if expected_now > 0 else 0.0
        elif self._contradicted(self._nowcast):
            return expected + (self._nowcast.matched_ - self._nowcast.expected_) / self._nowcast.time_
        return expected * ratio

    @staticmethod
    def _contradicted(nowcast: Nowcast) -> bool:
        """Whether far more came than forecast and nowcast together explain.

        A last line of defence: were the noise of the counts overrated, or the prior too strong, the nowcast
        would cling to a forecast that is plainly too low.
        """
        explained = nowcast.ratio.mean * nowcast.expected_
        return nowcast.matched_ >= _CONTRADICTING_MIN and nowcast.matched_ > _CONTRADICTING * explained


class _CalmRate:
    """The mean rate over a longer while: what to expect as long as no season is known."""

    def __init__(self) -> None:
        self._arrivals = self._time = 0.0

    @property
    def rate(self) -> float | None:
        """[1/s]; None before anything was seen, or if nothing ever came."""
        return self._arrivals / self._time if self._arrivals > 0 else None

    def update(self, observation: Observation, memory: float, overruling: float | None) -> float:
        """Take in one interval, or start anew at the `overruling` rate; return by what factor it moved."""
        before = self.rate
        if overruling is not None:
            self._time = observation.interval
            self._arrivals = overruling * observation.interval
        else:
            fade = exp(-observation.interval / memory)
            self._arrivals = fade * self._arrivals + observation.arrivals
            self._time = fade * self._time + observation.interval
        return self.rate / before if self.rate and before else 1.0


def _law(predicted: float, ratios: NDArray[np.float64], weights: NDArray[np.float64]) -> RateLaw:
    rates = predicted * ratios
    return RateLaw(predicted, rates, weights)
