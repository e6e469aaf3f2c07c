"""Counts of intervals, told one at a time and in any order, until all are known.

Several rows of one interval add up where rows carry labels (a model, a key); where they carry none, the first
counts. An interval that is absent between two others had no requests. One whose row cannot be used is not
known, which is not the same: it is not-a-number.

Who forecasts is stricter, and asks for gaps: then a row marked as filled in is not known either, for nobody
counted it; a row without a count is a gap, and no fault; and an absent interval is not known, unless zero is
what its absence must mean: the file has no row of zero, and has rows of one.
"""

from array import array
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import models
from autoscaler.telemetry.traffic.clock import Clock, calendar_start
from autoscaler.telemetry.traffic.demand import INTERVALS_MAX, Floats
from autoscaler.telemetry.traffic.faults import FaultCount
from autoscaler.telemetry.traffic.form import Told, Wanted
from forecasting.series import Series

_DAY, _HOUR = 86_400.0, 3600.0
_EVEN = 1e-3
"""Steps of so little difference are equal."""


class CountRows:
    """Counts, as they are told. `labelled` says that rows of one interval are of different requests."""

    def __init__(self, wanted: Wanted, labelled: bool) -> None:
        self.clock = Clock(wanted.zone, distinct=not labelled)
        self._wanted, self._labelled = wanted, labelled
        self._starts, self._lengths, self._counts = array("d"), array("d"), array("d")
        self._tokens_in, self._tokens_out = array("d"), array("d")
        self._numbers, self._marks = array("q"), array("q")
        self._models: dict[str, int] = {}
        self._filled = 0

    def add(
        self,
        number: int,
        line: str,
        start: float,
        count: float,
        *,
        length: float = nan,
        filled: bool = False,
        tokens: tuple[float, float] = (nan, nan),
        model: str = "",
    ) -> None:
        """Take in a row; `start` [s] and `length` [s] are not-a-number if it does not tell them."""
        if model:
            self._models[model] = self._models.get(model, 0) + (0 if isnan(count) else int(count))
        if self._wanted.only_model is not None and model != self._wanted.only_model:
            # The interval was counted all the same, and in it nothing of this model.
            count, tokens = 0.0, (0.0, 0.0)
        self._filled += filled
        self._starts.append(start)
        self._lengths.append(length)
        self._counts.append(nan if filled and self._wanted.gaps else count)
        self._tokens_in.append(tokens[0])
        self._tokens_out.append(tokens[1])
        self._numbers.append(number)
        self._marks.append(hash(line))

    def told(self, faults: FaultCount) -> Told:
        """Return the counts, evenly spaced; raises UsageError if they are not."""
        named = models.by_number(self._models)
        if not np.isfinite(self._counts).any():
            raise UsageError("has no row that can be used")
        if self._wanted.only_model is not None and self._wanted.only_model not in named:
            there = f"there is {models.in_words(named)}" if named else "it names no model"
            raise UsageError(f"has no requests of the model {self._wanted.only_model}; {there}")
        starts = np.array(self._starts)
        if np.isnan(starts).any():
            return self._without_times(named)
        kept = self._kept(starts, faults)
        begin = float(starts[kept].min())
        steps = np.diff(np.unique(starts[kept]))
        interval = self._interval(steps)
        if float(starts[kept].max() - begin) / interval > INTERVALS_MAX:
            raise UsageError(
                f"spans {starts[kept].max() - begin:,.10g} s in steps of {interval:g} s, more than the "
                f"{INTERVALS_MAX:,} intervals that can be held; cut it, or mend the times"
            )
        places = np.round((starts[kept] - begin) / interval).astype(np.int64)
        start = calendar_start([begin])
        counts = self._spread(np.array(self._counts)[kept], places, self._absent())
        return Told(
            Series(counts, interval, 0.0 if np.isnan(start) else start),
            self._notes(named, interval),
            self.clock.name(start),
            named,
            *(
                self._spread(np.array(tokens)[kept], places, nan) if np.isfinite(tokens).any() else None
                for tokens in (self._tokens_in, self._tokens_out)
            ),
        )

    def _without_times(self, named: dict[str, int]) -> Told:
        if self._wanted.interval is None:
            raise UsageError(
                "has counts and no times; say how long a row counted, as --interval 1s (to forecast: --step)"
            )
        return Told(Series(np.array(self._counts), self._wanted.interval), self._notes(named, 0.0), "", named)

    def _kept(self, starts: Floats, faults: FaultCount) -> NDArray[np.int64]:
        """Return the places of rows to be believed, and note repetitions as faults."""
        marks, counts = np.array(self._marks), np.array(self._counts)
        same = marks if self._labelled else starts
        _, first, of = np.unique(same, return_index=True, return_inverse=True)
        kept = np.zeros(len(starts), dtype=bool)
        kept[first] = True
        for place in np.flatnonzero(~kept).tolist():
            original = int(first[of[place]])
            differs = counts[place] != counts[original]
            reason = "a second count of the same interval" if differs else "a copy of an earlier line"
            faults.add(reason, self._numbers[place], f"as line {self._numbers[original]}")
        return np.flatnonzero(kept)

    def _interval(self, steps: Floats) -> float:
        """Return the length of an interval [s], as told or as the smallest step between two."""
        lengths = np.unique(self._lengths)
        if len(lengths) == 1 and lengths[0] > 0:
            interval = float(lengths[0])
        elif len(steps):
            interval = float(steps.min())
        else:
            raise UsageError("has 1 interval; at least 2 are needed to tell their length")
        # Of local days one has 23 hours and one 25.
        days = abs(interval - _DAY) <= _HOUR
        interval = _DAY if days else interval
        off = np.abs(steps - np.round(steps / interval) * interval)
        if (off > (_HOUR if days else _EVEN * interval)).any():
            raise UsageError(f"the times must ascend in even steps; the smallest step is {interval:g} s")
        return interval

    def _absent(self) -> float:
        told = np.array(self._counts)
        means_zero = not (self._wanted.gaps and ((told == 0).any() or not (told == 1).any()))
        return 0.0 if means_zero else nan

    @staticmethod
    def _spread(values: Floats, places: NDArray[np.int64], absent: float) -> Floats:
        """Add up `values` at their places; where there is none, `absent`."""
        length = int(places.max()) + 1
        total = np.bincount(places, weights=values, minlength=length)
        return np.where(np.bincount(places, minlength=length) > 0, total, absent)

    def _notes(self, named: dict[str, int], interval: float) -> tuple[str, ...]:
        notes = list(self.clock.notes())
        if self._filled:
            notes.append(f"{self._filled:,} intervals are marked as filled in: nobody counted them")
        if len(named) > 1 and self._wanted.only_model is None:
            notes.append(f"{len(named)} models are taken together: {models.in_words(named)}")
        if interval >= _DAY:
            notes.append("it counts by the day: what happens within one cannot be seen")
        return tuple(notes)
