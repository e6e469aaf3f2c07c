"""What each interval of a week is like: a table with a row for each, learned in O(1) per count.

Columns of a row:

    day          mean of this time of day
    week         mean of this time of this day of the week
    kind         mean of this time of day on working days, or on weekends, if the calendar is known
    last day     what came at this time of day when it was last known
    last week    what came at this time of the week when it was last known
    departure    by how much the last day departed from the mean of the day here

What is not known yet is as the day is. Means give the newest the weight 0.1, so that the last ten or so
decide: a few weeks for a time of the week. Rows follow the wall clock of a zone if the history says when
it was; else they are counted in intervals, and nothing is known of weekends.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from forecasting.distribution import Array
from forecasting.forecaster import Stateful
from forecasting.local_time import DAY as DAY_SECONDS
from forecasting.local_time import MONDAY, WEEKEND, utc_offset

WEEK_DAYS = 7
DAY, WEEK, KIND, LAST_WEEK, LAST_DAY, DEPARTURE = range(6)
COLUMNS = 6
FOREVER = 2**62
Rows = npt.NDArray[np.integer[Any]]
MEMORY = 0.1
"""Weight of the newest in a mean."""


class SeasonTable(Stateful):
    """A profile of day and week.

    Parameters
    ----------
    season_length : int
        Intervals in a day, >= 2. A week is seven of them.
    zone : str
        Whose wall clock it follows, such as "Europe/Berlin".
    """

    def __init__(self, season_length: int, zone: str = "UTC") -> None:
        if season_length < 2:
            raise ValueError(f"need season_length >= 2 intervals, got {season_length}")
        utc_offset(zone, 0.0)  # is there such a zone?
        self.season_length = season_length
        self.zone = zone
        self.start_ = math.nan
        self._shift, self._same_from, self._same_to = 0, 0, 0  # nothing looked up yet
        self.cells_ = np.zeros((WEEK_DAYS * season_length, COLUMNS))
        self.rows_known_ = 0
        self.day_weight_ = np.zeros(season_length)
        self.week_weight_ = np.zeros(WEEK_DAYS * season_length)
        self.kind_weight_ = np.zeros((2, season_length))

    def begin(self, start: float, roots: Array) -> None:
        """Start from a first season of values, shape (season_length,), gaps bridged.

        Parameters
        ----------
        start : float
            When it began [s since the epoch]; NaN if that is not known.
        """
        self.start_ = start
        self._same_to = self._same_from
        for tick, value in enumerate(roots.tolist()):
            self.learn(tick, value)

    def flatten(self, value: float) -> None:
        """Know no season: every interval is like the other."""
        self.cells_[:, :DEPARTURE] = value

    def scale(self, factor: float) -> None:
        """Take note that all of it is `factor` times what it was."""
        self.cells_ *= factor

    def row(self, tick: int) -> int:
        """Return the row of interval `tick`, counted from the start of the table."""
        if not self._same_from <= tick < self._same_to:
            self._look_up(tick)
        return (tick + self._shift) % len(self.cells_)

    def rows(self, tick: int, steps: Rows) -> Rows:
        """Return the rows of the intervals at `steps`, ascending, after interval `tick`; shape (n,)."""
        first, last = tick + int(steps[0]), tick + int(steps[-1])
        if not (self._same_from <= first and last < self._same_to):
            self._look_up(first)
            if last >= self._same_to:  # clocks change on the way
                return np.array([self.row(tick + step) for step in steps.tolist()])
        return np.asarray((steps + (tick + self._shift)) % len(self.cells_))

    def _look_up(self, tick: int) -> None:
        """Find by how much rows are ahead of intervals at `tick`, and for how long that holds."""
        if math.isnan(self.start_):
            self._shift, self._same_from, self._same_to = 0, 0, FOREVER
            return
        interval = DAY_SECONDS / self.season_length
        moment = self.start_ + tick * interval
        offset, same_for = utc_offset(self.zone, moment)
        self._shift = math.floor((self.start_ + offset + MONDAY) / interval + 1e-6)
        self._same_from, self._same_to = tick, tick + math.ceil(same_for / interval - 1e-6)

    def learn(self, tick: int, value: float) -> None:
        """Learn what came in interval `tick`."""
        m = self.season_length
        row = self.row(tick)
        phase, weekday = row % m, row // m
        day = self.cells_[phase::m]
        weekend = weekday in WEEKEND
        self.day_weight_[phase] = weight = float(self.day_weight_[phase]) * (1 - MEMORY) + 1
        before = float(day[0, DAY])
        day[:, DAY] = mean = before + (value - before) / weight
        day[:, LAST_DAY:] = (value, value - before if weight > 1 else 0.0)
        if math.isnan(self.start_):
            day[:, KIND] = mean
        else:
            self._learn_kind(day, phase, weekend, value)
        weight = float(self.week_weight_[row])
        if not weight:
            self.rows_known_ += 1
        self.week_weight_[row] = weight = weight * (1 - MEMORY) + 1
        before = float(day[weekday, WEEK])
        day[weekday, WEEK] = before + (value - before) / weight
        day[weekday, LAST_WEEK] = value
        if self.rows_known_ < len(self.cells_):
            unknown = self.week_weight_[phase::m] == 0
            day[unknown, WEEK], day[unknown, LAST_WEEK] = mean, value

    def _learn_kind(self, day: Array, phase: int, weekend: bool, value: float) -> None:
        """Learn of a working day or a weekend; the other is as the day is while none was seen."""
        same = slice(WEEKEND[0], None) if weekend else slice(None, WEEKEND[0])
        other = slice(None, WEEKEND[0]) if weekend else slice(WEEKEND[0], None)
        weights = self.kind_weight_[:, phase]
        weights[int(weekend)] = weight = weights[int(weekend)] * (1 - MEMORY) + 1
        before = float(day[same, KIND][0])
        day[same, KIND] = before + (value - before) / weight
        if weights[int(not weekend)] == 0:
            day[other, KIND] = day[other, DAY]
