"""Demand one lead time ahead, as a distribution.

Three layers, each correcting the one before. A *seasonal forecast* says what this time of day is like;
there is none until a season is known, and the mean over a longer while takes its place. The *nowcast*
compares it with the last minutes: the forecast is the prior, the counts are the data, so that Poisson
noise is ignored and a wrong forecast is overruled. The *lead error* is how far off all this has been, one
lead time ahead: it says how much of the nowcast's correction will still hold then, and spreads the one
number into a distribution.

The forecast is of demand, which users make; never of replicas, which we make ourselves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Observation
from autoscaler.scaling.calm_rate import CalmRate
from autoscaler.scaling.fit import Fitted
from autoscaler.scaling.lead_error import LeadError
from autoscaler.scaling.options import DecisionPolicy
from autoscaler.scaling.seasonal_forecast import SeasonalForecast
from autoscaler.scaling.size import RateLaw
from forecasting.forecaster import Forecaster
from forecasting.nowcast import Nowcast

_NOWCAST_INTERVALS = 12  # control intervals that the nowcast looks back: two minutes at 10 s
_CALM_WINDOWS = 5  # of the nowcast's, over which the mean is taken while no season is known
_FORECAST_CV = 0.2  # how far a seasonal forecast is trusted before it has been judged
_ERROR_PRIOR_LEAD_TIMES = 50.0  # of watching; a tail cannot be known from a few
_ERROR_MEMORY_SEASONS = 2.0
_CARRIED_MIN = 0.05  # of a correction, one lead time ahead
_PEAK_POINTS = 8
_OUTLOOK = 1 / 12  # of a season, beyond the lead time, in which the next change is looked for
_OUTLOOK_POINTS = 60
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
    as_forecast : RateLaw
        One lead time from now, had the last minutes been as forecast.
    """

    lead: RateLaw
    peak: RateLaw
    as_forecast: RateLaw


class DemandForecast:
    """Keeps what came, and predicts what will come."""

    def __init__(self, policy: DecisionPolicy, forecaster: Forecaster) -> None:
        self._seasonal = SeasonalForecast(policy, forecaster)
        self._calm = CalmRate()
        self._nowcast: Nowcast | None = None
        self._error = LeadError(_ERROR_MEMORY_SEASONS * policy.season)
        self._wall_time = 0.0
        self._outlook = _OUTLOOK * policy.season

    def warm(self, counts: NDArray[np.float64], interval: float, end_wall_time: float) -> None:
        """Take in `counts` per `interval` [s] before `end_wall_time`, oldest first; NaN is missing."""
        for place, count in enumerate(counts):
            if not np.isnan(count):
                self._seasonal.add(
                    float(count), interval, end_wall_time - (len(counts) - 1 - place) * interval
                )

    def update(self, observation: Observation | None, elapsed: float) -> None:
        """Take in one interval; None for one that was lost, of `elapsed` [s]."""
        if observation is None:
            self._wall_time += elapsed
            self._error.lost()
            return
        self._wall_time = observation.wall_time
        memory = _NOWCAST_INTERVALS * observation.interval
        if self._nowcast is None:
            self._nowcast = Nowcast(prior_cv=_FORECAST_CV, memory=memory)
        expected = self._expected(-observation.interval / 2)
        self._nowcast.update(
            observation.arrivals,
            None if expected is None else expected * observation.interval,
            observation.interval,
        )
        # A surprise ends the calm that the mean was taken over; another begins with what came since.
        overruling = self._nowcast.rate.mean if self._nowcast.overruled else None
        revised = self._calm.update(observation, _CALM_WINDOWS * memory, overruling)
        if not self._seasonal.known and expected is not None:
            seen, explained = self._nowcast.matched_, self._nowcast.expected_
            if overruling is None:
                self._rebase(revised)
            elif seen > 0 and explained > 0:
                self._nowcast.rebase(seen / explained)  # the new mean explains what has surprised
        self._learn(observation)

    def learn_error(self, observation: Observation, lead_time: float, now: float) -> None:
        """Judge the predictions that are due now, and remember the one for a lead time ahead."""
        if self._nowcast is None:
            return
        window = max(4 * observation.interval, lead_time / 2)
        dispersion = self._nowcast.dispersion_.value
        self._error.came(observation.arrivals, observation.interval, now, window, dispersion)
        expected, corrected = self._ahead(np.array([lead_time]))
        said = self._said(expected, corrected, np.ones(1))
        self._error.predict(float(expected[0]), float(corrected[0]), float(said[0]), now + lead_time)

    def demand(self, lead_time: float, hold: float) -> Demand:
        """Predict the demand of the times that a decision of now is about."""
        later = np.concatenate(([lead_time], np.linspace(0.0, lead_time + hold, _PEAK_POINTS)))
        expected, corrected = self._ahead(later)
        rates = self._said(expected, corrected, later / lead_time)
        spread = self._seasonal.spread(self._wall_time + lead_time)
        lead, peak, as_forecast = (
            RateLaw(rate, *self._error.rates(rate, spread, _ERROR_PRIOR_LEAD_TIMES * lead_time))
            for rate in (float(rates[0]), float(rates.max()), float(expected[0]))
        )
        return Demand(lead, peak, as_forecast)

    def leaves(self, lowest: float, highest: float, lead_time: float) -> float:
        """When demand leaves [lowest, highest] [1/s] in a way that must be decided upon.

        Returns
        -------
        float
            [s] from now: one lead time before it exceeds, or when it falls below; NaN if that is not known or
            not within a twelfth of a season.
        """
        if not self._seasonal.known:
            return nan
        later = np.linspace(0.0, lead_time + self._outlook, _OUTLOOK_POINTS)
        rates = self._said(*self._ahead(later), later / lead_time)
        out = np.flatnonzero((rates > highest) | (rates < lowest))
        if not out.size:
            return nan
        first = int(out[0])
        return float(max(0.0, later[first] - (lead_time if rates[first] > highest else 0.0)))

    def refit_due(self, now: float) -> Callable[[], Fitted] | None:
        """Hand out a fit if one is due; see `SeasonalForecast.refit_due`."""
        return self._seasonal.refit_due(now)

    def adopt(self, fitted: Fitted) -> None:
        """Take over what a fit learned; see `SeasonalForecast.adopt`."""
        self._seasonal.adopt(fitted)

    def _learn(self, observation: Observation) -> None:
        said = self._seasonal.rates(np.array([observation.wall_time]))
        self._seasonal.add(observation.arrivals, observation.interval, observation.wall_time)
        says = self._seasonal.rates(np.array([observation.wall_time]))
        if said is not None and says is not None and said[0] > 0 and says[0] > 0 and says[0] != said[0]:
            self._rebase(float(says[0] / said[0]))

    def _rebase(self, factor: float) -> None:
        """Tell the nowcast that the forecast has learned what it knew already.

        One more bin moves a forecast little. Where it was next to nothing and is something now, the factor is
        without bounds and would void all that the nowcast has seen.
        """
        if self._nowcast is not None:
            self._nowcast.rebase(min(max(factor, 1 / _REBASE_MAX), _REBASE_MAX))

    def _expected(self, later: float) -> float | None:
        """What is expected `later` [s] than now, before the nowcast [1/s]; None if nothing is known."""
        rates = self._seasonal.rates(np.array([self._wall_time + later]))
        return self._calm.rate if rates is None else float(rates[0])

    def _said(
        self, expected: NDArray[np.float64], corrected: NDArray[np.float64], lead_times: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Make one of forecast and correction, so many `lead_times` from now, each shape (n,) [1/s].

        Of a correction that is not a surprise, the share that is known to hold one lead time ahead is carried
        there, and more or less of it nearer or farther. Without a season there is nothing to go back to.
        """
        if not self._seasonal.known or (self._nowcast is not None and self._nowcast.overruled):
            return corrected
        carried = max(self._error.carried, _CARRIED_MIN) ** lead_times
        root = np.sqrt(expected)
        return np.asarray((root + carried * (np.sqrt(corrected) - root)) ** 2)

    def _ahead(self, later: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What is expected `later` [s] than now, and corrected by what came lately, in full [1/s].

        What overrules a forecast is added to it: a surge at night does not multiply the day. Else, and
        where less comes, the ratio says more.
        """
        nowcast, expected_now = self._nowcast, self._expected(0.0)
        if nowcast is None or expected_now is None:
            alike = np.full(len(later), 0.0 if nowcast is None else nowcast.rate.mean)
            return alike, alike
        rates = self._seasonal.rates(self._wall_time + later)
        expected = np.full(len(later), expected_now) if rates is None else rates
        if nowcast.overruled:
            rate_now = nowcast.rate.mean
            if rate_now > expected_now:
                return expected, expected + (rate_now - expected_now)
            return expected, expected * (rate_now / expected_now if expected_now > 0 else 0.0)
        if _contradicted(nowcast):
            return expected, expected + (nowcast.matched_ - nowcast.expected_) / nowcast.time_
        return expected, expected * nowcast.ratio.mean


def _contradicted(nowcast: Nowcast) -> bool:
    """Whether far more came than forecast and nowcast together explain.

    A last line of defence: were the noise of the counts overrated, or the prior too strong, the nowcast
    would cling to a forecast that is plainly too low.
    """
    explained = nowcast.ratio.mean * nowcast.expected_
    return nowcast.matched_ >= _CONTRADICTING_MIN and nowcast.matched_ > _CONTRADICTING * explained
