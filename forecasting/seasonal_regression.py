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
- Errors that keep to one side (`Cusum`) mean that the level has shifted: the whole table is scaled to it.
  A calm history finds that the last error says nothing of the next; alone, it would never follow.
- Nothing is learned from a missing count, and steps are counted from the last known one: after a gap of
  g, step h is forecast as step g + h.
"""

import math

import numpy as np

from forecasting.burst import Cusum
from forecasting.distribution import Array
from forecasting.forecaster import History, checked_history
from forecasting.horizon_errors import STEP_MAX, STEPS, Steps
from forecasting.local_time import DAY as DAY_SECONDS
from forecasting.point_forecaster import PointForecaster
from forecasting.season_table import DAY, DEPARTURE, KIND, WEEK, SeasonTable
from forecasting.series import Series
from forecasting.stacking import stack

FADES = (1.5, 4.0, 12.0)
"""Lengths of the running means of departures [intervals]; one more is as long as a day."""
NOW, AHEAD = 10, 11
"""Features of the last known interval, and of the one that is forecast."""
FADING = np.array([1.0] * NOW + [0.0] * 4 + [1.0] + [0.0] * 5 + [1.0])
"""Features that say less and less of steps beyond those that coefficients were estimated for."""
HISTORY_DAYS = 28
"""The newest days that a fit looks at."""
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
SPREAD_MIN, SPREAD_MEMORY = 0.25, 100.0
"""Variance of z for Poisson counts; intervals over which the variance of its errors is measured."""
SHIFT_MAX = 10.0
"""By this factor z is scaled at a time, at most."""
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
    `fit` looks at the last 28 days, and needs one count. Below one and a half days it knows no season.
    """

    points_are_means = False

    def __init__(self, season_length: int, zone: str = "UTC") -> None:
        super().__init__()
        self.season_length = season_length
        self.zone = zone
        self._forget()

    def _forget(self) -> None:
        self.table_ = SeasonTable(self.season_length, self.zone)
        self.seasonal_ = False
        self.tick_ = 0
        self.known_ = -1
        self.now_ = np.zeros(NOW)
        self.base_ = 0.0
        self.keep_ = np.zeros(len(FADES) + 1)
        self.means_ = np.zeros(len(FADES) + 1)
        self.mean_weights_ = np.zeros(len(FADES) + 1)
        self.coefficients_ = np.zeros((len(STEPS), NOW + AHEAD))
        self.coefficients_[:, 0] = CORRECTION
        self.shift_ = Cusum()
        self.spread_ = 1.0
        self.doubted_ = 0.0
        self.highest_ = 0.0

    def _history_max(self) -> int:
        return HISTORY_DAYS * self.season_length

    def _start(self, history: History) -> Array:
        self._forget()
        counts = checked_history(history)
        roots = np.sqrt(counts + ZERO)
        first = self._begin(roots, _start_of(history, self.season_length))
        features, offsets = self._replay(roots[first:])
        prior = self.coefficients_
        self.coefficients_, predicted = stack(features, offsets, roots[first:], STEPS, prior)
        for count, points in zip(counts[first:].tolist(), self._counts(predicted), strict=True):
            if not math.isnan(count):
                self.errors_.score(count)
            self.errors_.expect(points)
        return counts[:0]

    def _begin(self, roots: Array, start: float) -> int:
        """Set the table to the first season, or to the mean if there is none; return what it has used up."""
        m = self.season_length
        self.seasonal_ = len(roots) >= SEASONS_MIN * m
        self.keep_ = np.exp(-1 / np.array([*FADES, float(m) if self.seasonal_ else FLAT_LENGTH]))
        used = m if self.seasonal_ else 0
        part = roots[: used or len(roots)]
        known = np.flatnonzero(~np.isnan(part))
        if not known.size:
            raise ValueError(f"no count is known in the first {len(part)}; need some to begin with")
        values = part[known]
        self.highest_ = float(values.max())
        self.spread_ = float(np.sum(np.diff(values) ** 2) / 2 / len(values)) + SPREAD_MIN
        if self.seasonal_:
            self.table_.begin(start, np.interp(np.arange(m), known, values, period=m))
        else:
            self.table_.flatten(float(values.mean()))
        self.tick_ = used
        self.known_ = max(used - 1, 0)
        self.base_ = float(self.table_.cells_[0, DAY])
        return used

    def _replay(self, roots: Array) -> tuple[Array, Array]:
        """Live through `roots`, shape (n,); return features and offsets of the forecasts made after each."""
        features = np.empty((len(roots), len(STEPS), NOW + AHEAD))
        offsets = np.empty((len(roots), len(STEPS)))
        expected = math.nan
        for i, root in enumerate(roots.tolist()):
            self._take(root, expected)
            offsets[i], features[i] = self._ahead(STEPS + self._gap())
            expected = offsets[i, 0] + float(features[i, 0] @ self.coefficients_[0])
        return features, offsets

    def _learn(self, count: float, bound: float) -> None:
        if not self.highest_:
            raise ValueError("SeasonalRegression knows no history yet; call fit with some counts")
        self._take(math.sqrt(count + ZERO), math.sqrt(self.errors_.newest + ZERO))

    def _take(self, root: float, expected: float) -> None:
        """Learn the root of a count (NaN = missing), of which `expected` had been said (NaN = nothing)."""
        tick, self.tick_ = self.tick_, self.tick_ + 1
        if math.isnan(root):
            return
        error = 0.0 if math.isnan(expected) else root - expected
        value = self._believed(root, error)
        cells = self.table_.cells_[int(self.table_.rows(np.array([tick]))[0])].copy()
        base = float(cells[DAY])
        if self.shift_.update(error / math.sqrt(self.spread_)):
            base, cells = self._shift(base, value - base, cells)
        departure = value - base
        self.mean_weights_ = self.mean_weights_ * self.keep_ + 1
        self.means_ += (departure - self.means_) / self.mean_weights_
        self.known_, self.base_ = tick, base
        self.now_[0] = departure
        self.now_[1:4] = self.means_[:3] - departure
        self.now_[4] = self.means_[3]
        self.now_[5:9] = cells[WEEK:DEPARTURE] - base
        self.now_[9] = cells[DEPARTURE]
        if self.seasonal_:
            self.table_.learn(tick, value)

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

    def _shift(self, base: float, departure: float, cells: Array) -> tuple[float, Array]:
        """Scale the table to the level of the last few counts; forget the departures from the old one."""
        recent = float(self.means_[1]) + (departure - float(self.means_[1])) / 2
        factor = min(max((base + recent) / base, 1 / SHIFT_MAX), SHIFT_MAX)
        self.table_.scale(factor)
        self.means_[:] = 0.0
        self.mean_weights_[:] = 0.0
        return base * factor, cells * factor

    def _points(self, steps: Steps) -> Array:
        if not self.highest_:
            return np.full(len(steps), math.nan)
        steps = steps + self._gap()
        offsets, features = self._ahead(steps)
        return self._counts(offsets + (features * self._coefficients(steps)).sum(axis=1))

    def _gap(self) -> int:
        """Return how many intervals have passed since the last known count."""
        return self.tick_ - 1 - self.known_

    def _ahead(self, steps: Steps) -> tuple[Array, Array]:
        """Return offsets, shape (n,), and features, shape (n, NOW + AHEAD), of `steps` after the last known."""
        n = len(steps)
        rows = self.table_.rows(self.known_ + steps)
        cells = self.table_.cells_[rows]
        offsets = cells[:, DAY]
        features = np.empty((n, NOW + AHEAD))
        features[:, :NOW] = self.now_
        features[:, NOW : NOW + 4] = cells[:, WEEK:DEPARTURE] - offsets[:, None]
        features[:, NOW + 4] = cells[:, DEPARTURE]
        features[:, NOW + 5] = offsets - self.base_
        near = self.table_.cells_[:, :KIND]
        features[:, NOW + 6 : NOW + 8] = near[rows - 1] - cells[:, :KIND]
        features[:, NOW + 8 : NOW + 10] = near[(rows + 1) % len(near)] - cells[:, :KIND]
        features[:, NOW + 10] = self.now_[0] * (offsets / self.base_ - 1)
        return offsets, features

    def _coefficients(self, steps: Steps) -> Array:
        """Return those of `steps`, shape (n, NOW + AHEAD): between known steps a mixture, beyond fading."""
        if steps is STEPS or np.array_equal(steps, STEPS):
            return self.coefficients_
        right = np.clip(np.searchsorted(STEPS, steps), 1, len(STEPS) - 1)
        share = np.clip((steps - STEPS[right - 1]) / (STEPS[right] - STEPS[right - 1]), 0.0, 1.0)[:, None]
        mixed = self.coefficients_[right - 1] * (1 - share) + self.coefficients_[right] * share
        beyond = np.maximum(steps - STEP_MAX, 0)[:, None] / STEP_MAX
        return np.asarray(mixed * 0.5 ** (beyond * FADING))

    def _counts(self, roots: Array) -> Array:
        """Return the counts that belong to `roots`, within what can come."""
        highest = math.sqrt(GROWTH_MAX) * self.highest_
        return np.asarray(np.maximum(np.clip(roots, 0.0, highest) ** 2 - ZERO, 0.0))


def _start_of(history: History, season_length: int) -> float:
    """Return when the history began, if it says so and its seasons are days; else NaN."""
    if isinstance(history, Series) and abs(history.interval * season_length - DAY_SECONDS) < 1e-6:
        return history.start
    return math.nan
