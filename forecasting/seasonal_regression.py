"""What this time of day and week is like, and how far the last hours say that today is different.

The square root of a count, z = √(y + ¼), has nearly the same noise at every load (Anscombe), so nights
and days may be learned from together. In z, `SeasonTable` keeps what each interval of the week is like,
and running means tell by how much the last intervals departed from the mean of their time of day.

The forecast for step h is the mean of the time of day there, plus a linear combination of how the other
columns of the table differ from it, there and now, and of the departures. Which of those matter, and how
fast they fade with h, is estimated (`stacking`). So it is persistence, seasonal naive of day and week,
profile, and a decaying correction of the last error in one, mixed as well as the history can tell; while
it cannot, it is the profile and 0.8 of the last departure.

Made for live traffic:

- A count further off than can be believed is taken at a bound the first time; from the second on the same
  side it is believed.
- A calm history finds that the last departure says nothing of the next; alone, it would never follow a
  level that has shifted. So a second forecast is kept, the profile at the level of the last few counts. It
  speaks while the errors of the first have lately been twice as large.
- Nothing is learned from a missing count, and steps are counted from the last known one: after a gap of
  g, step h is forecast as step g + h.
"""

import math
from typing import Self, overload

import numpy as np

from forecasting.distribution import Array
from forecasting.forecaster import History
from forecasting.horizon_errors import STEPS, Steps
from forecasting.local_time import DAY as DAY_SECONDS
from forecasting.point_forecaster import PointForecaster
from forecasting.season_table import DAY, Rows, SeasonTable
from forecasting.seasonal_features import (
    AHEAD,
    BASE,
    NOW,
    WEIGHTS,
    features,
    unfolded,
    weighted,
    weights_at,
)
from forecasting.series import Series
from forecasting.stacking import stack

FADES = (1.5, 4.0, 12.0)
"""Lengths of the running means of departures [intervals]; one more is as long as a day."""
HISTORY_DAYS = 70
"""The newest days that the table is learned from: ten times of the week."""
ESTIMATION_DAYS = 28
"""The newest days that coefficients are estimated from."""
SEASONS_MIN = 1.5
"""A season is believed in from so many on."""
FLAT_LENGTH = 60.0
"""Without a season, the longest running mean is over so many intervals."""
CORRECTION = 0.8
"""Share of the last departure that is expected of the next intervals, before anything was estimated."""
ZERO = 0.25
"""Added to a count under the root."""
BELIEVED = 4.0
"""Standard deviations beyond which an error is doubted."""
UNJUDGED = 8
"""This part of a history, the first, is forecast with coefficients that hardly anything is known of."""
SPREAD_MIN, SPREAD_MEMORY = 0.25, 100.0
"""Variance of z for Poisson counts; intervals over which the variance of its errors is measured."""
RECENT = 4.0
"""Intervals over which the errors of the two forecasts are compared."""
RECENT_FIT = 16
"""After a fit, the errors of so many intervals are enough to compare."""
SHIFTED = 2.0
"""So many times the errors of the other make a level shift."""
RISE_MAX = 2.0
"""A level above the profile grows with it by this factor at most: a stir at night is no rush by day."""
GROWTH_MAX = 2.0
"""No forecast exceeds the highest count ever believed by more than this factor."""


class SeasonalRegression(PointForecaster):
    """A profile of day and week with learned corrections; see the top of this file.

    Parameters
    ----------
    season_length : int
        Intervals in a day, >= 2: 288 for five minutes. A week is seven of them.
    zone : str
        Time zone of the people who cause the traffic, such as "Europe/Berlin". Days and weeks follow its
        clocks if the history is a `Series`, and else are counted in intervals, with weekends not known.

    Notes
    -----
    `fit` needs one known count, and takes about a second for 28 days of five minutes. Below one and a half
    days it knows no season.
    """

    holds_the_naive = True

    def __init__(self, season_length: int, zone: str = "UTC") -> None:
        super().__init__()
        self.season_length = season_length
        self.zone = zone
        self.start_ = math.nan
        self._forget()

    def _forget(self) -> None:
        self.table_ = SeasonTable(self.season_length, self.zone)
        self.seasonal_ = False
        self.tick_ = 0
        self.known_ = -1
        self.now_ = np.zeros(NOW + 1)
        self.keep_ = [0.0] * (len(FADES) + 1)
        self.means_ = [[0.0, 0.0] for _ in self.keep_]  # each with its weight
        self.weights_ = np.zeros((len(STEPS), WEIGHTS))
        self.said_ = np.full(len(STEPS), math.nan)
        self.error_ = 0.0  # recent absolute error of z of the regression, and of the profile at the new level
        self.error_followed_ = 0.0
        self.followed_ = math.nan
        self.spread_ = 1.0
        self.doubted_ = 0.0
        self.highest_ = 0.0

    def _history_max(self) -> int:
        return HISTORY_DAYS * self.season_length

    def fit(self, history: History) -> Self:
        """Forget, and learn from the newest days of `history`; see `Forecaster.fit`."""
        self.start_ = _start_of(history[-self._history_max() :], self.season_length)
        return super().fit(history)

    def _start(self, history: Array) -> Array:
        self._forget()
        known = np.flatnonzero(~np.isnan(history))
        if not known.size:
            raise ValueError(f"no count is known among {len(history)}; need some to fit to")
        history = history[known[0] :]
        self.start_ += float(known[0]) * DAY_SECONDS / self.season_length
        roots = np.sqrt(history + ZERO)
        first = self._begin(roots)
        first = self._pass_over(roots, first)
        regressors, offsets = self._replay(roots[first:])
        prior = np.zeros((len(STEPS), NOW + AHEAD))
        prior[:, 0] = CORRECTION
        coefficients, predicted = stack(regressors, offsets, roots[first:], STEPS, prior)
        self.weights_ = unfolded(coefficients)
        self.said_ = self._regression(STEPS)
        self._judge(history[first:], roots[first:], predicted)
        return history[:0]

    def _judge(self, counts: Array, roots: Array, predicted: Array) -> None:
        """Learn from the errors that the regression would have made in the history."""
        for error in np.abs(roots[1:] - predicted[:-1, 0])[-RECENT_FIT:]:
            if not math.isnan(error):
                self.error_ += (float(error) - self.error_) / RECENT
        first = len(counts) // UNJUDGED
        for count, points in zip(counts[first:].tolist(), self._counts(predicted[first:]), strict=True):
            if not math.isnan(count):
                self.errors_.score(count)
            self.errors_.expect(points)

    def _begin(self, roots: Array) -> int:
        """Set the table to the first season, or to the mean if there is none; return what it has used up."""
        m = self.season_length
        self.seasonal_ = len(roots) >= SEASONS_MIN * m
        lengths = (*FADES, float(m) if self.seasonal_ else FLAT_LENGTH)
        self.keep_ = [math.exp(-1 / length) for length in lengths]
        used = m if self.seasonal_ else 0
        part = roots[: used or len(roots)]
        known = np.flatnonzero(~np.isnan(part))
        values = part[known]
        self.highest_ = float(values.max())
        self.spread_ = float(np.sum(np.diff(values) ** 2) / 2 / len(values)) + SPREAD_MIN
        if self.seasonal_:
            self.table_.begin(self.start_, np.interp(np.arange(m), known, values, period=m))
        else:
            self.table_.flatten(float(values.mean()))
        self.tick_ = used
        self.known_ = max(used - 1, 0)
        self.now_[BASE] = self.table_.cells_[0, DAY]
        return used

    def _pass_over(self, roots: Array, first: int) -> int:
        """Learn what is too old to estimate coefficients from, from `first` on; return where it ends."""
        end = max(len(roots) - ESTIMATION_DAYS * self.season_length, first)
        for root in roots[first:end].tolist():
            self._take(root, self._expected())
        return end

    def _expected(self) -> float:
        """Return the root that is expected next before any coefficient was estimated."""
        return float(self.table_.cells_[self.table_.row(self.tick_), DAY]) + CORRECTION * float(self.now_[0])

    def _replay(self, roots: Array) -> tuple[Array, Array]:
        """Live through `roots`, shape (n,); return features and offsets of the forecasts made after each."""
        out = np.empty((len(roots), len(STEPS), NOW + AHEAD))
        offsets = np.empty((len(roots), len(STEPS)))
        for i, root in enumerate(roots.tolist()):
            self._take(root, self._expected())
            offsets[i], out[i] = features(self.table_.cells_, self._rows(STEPS), self.now_)
        return out, offsets

    def _learn(self, count: float, bound: float) -> None:
        if not self.highest_:
            raise ValueError("SeasonalRegression knows no history yet; call fit with some counts")
        self._take(math.sqrt(count + ZERO), float(self.said_[0]))
        self.said_ = self._regression(STEPS)

    def _take(self, root: float, expected: float) -> None:
        """Learn the root of a count (NaN = missing), of which `expected` had been said."""
        tick, self.tick_ = self.tick_, self.tick_ + 1
        if math.isnan(root):
            return
        error = root - expected
        self._compare(root, error)
        value = self._believed(root, error)
        base, week, kind, last_week, last_day, yesterday = self.table_.cells_[self.table_.row(tick)].tolist()
        departure = value - base
        self._average(departure)
        self.known_ = tick
        short, middle, long, day = (mean for mean, _ in self.means_)
        near = (departure, short - departure, middle - departure, long - departure, day, yesterday)
        self.now_[:] = (*near, week - base, kind - base, last_week - base, last_day - base, base)
        if self.seasonal_:
            self.table_.learn(tick, value)
        following = float(self.table_.cells_[self.table_.row(self.tick_), DAY])
        self.followed_ = following + self._risen(following)

    def _average(self, departure: float) -> None:
        """Learn a departure in all running means: Σ w d / Σ w, right from the first on."""
        for mean, keep in zip(self.means_, self.keep_, strict=True):
            mean[1] = mean[1] * keep + 1
            mean[0] += (departure - mean[0]) / mean[1]

    def _believed(self, root: float, error: float) -> float:
        """Return the value to learn: within bounds of what was expected, unless it was doubted before."""
        bound = BELIEVED * math.sqrt(self.spread_)
        within = min(max(error, -bound), bound)
        self.spread_ += (within**2 - self.spread_) / SPREAD_MEMORY
        self.spread_ = max(self.spread_, SPREAD_MIN)
        value = root if error * self.doubted_ > 0 else root - error + within
        self.doubted_ = error - within
        self.highest_ = max(self.highest_, value)
        return value

    def _compare(self, root: float, error: float) -> None:
        """Learn which of the two forecasts has lately been nearer."""
        if math.isnan(self.followed_):
            return
        self.error_ += (abs(error) - self.error_) / RECENT
        self.error_followed_ += (abs(root - self.followed_) - self.error_followed_) / RECENT

    @overload
    def _risen(self, bases: float) -> float: ...
    @overload
    def _risen(self, bases: Array) -> Array: ...
    def _risen(self, bases: float | Array) -> float | Array:
        """Return what the level of the last few counts adds to the profile where it is `bases`."""
        level = self.means_[1][0]
        share = level / float(self.now_[BASE])
        if level < 0:
            return bases * max(share, -1.0)
        risen: float | Array = np.minimum(bases * share, RISE_MAX * level)
        return risen

    def _points(self, steps: Steps) -> Array:
        if not self.highest_:
            return np.full(len(steps), math.nan)
        if self.error_ > SHIFTED * self.error_followed_ + math.sqrt(SPREAD_MIN):
            bases = self.table_.cells_[self._rows(steps), DAY]
            return self._counts(bases + self._risen(bases))
        return self._counts(self.said_ if steps is STEPS else self._regression(steps))

    def _regression(self, steps: Steps) -> Array:
        """Return the roots that the regression forecasts."""
        gap = self._gap()
        known_steps = steps is STEPS and not gap
        weights = self.weights_ if known_steps else weights_at(self.weights_, steps + gap)
        return weighted(weights, self.table_.cells_, self._rows(steps), self.now_)

    def _rows(self, steps: Steps) -> Rows:
        return self.table_.rows(self.tick_ - 1, steps)

    def _gap(self) -> int:
        """Return how many intervals have passed since the last known count."""
        return self.tick_ - 1 - self.known_

    def _counts(self, roots: Array) -> Array:
        """Return the counts that belong to `roots`, within what can come."""
        highest = math.sqrt(GROWTH_MAX) * self.highest_
        return np.asarray(np.minimum(np.maximum(roots, ZERO**0.5), highest) ** 2 - ZERO)


def _start_of(history: History, season_length: int) -> float:
    """Return when the history began, if it says so and its seasons are days; else NaN."""
    if isinstance(history, Series) and abs(history.interval * season_length - DAY_SECONDS) < 1e-6:
        return history.start
    return math.nan
