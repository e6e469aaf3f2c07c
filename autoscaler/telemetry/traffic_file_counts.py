"""A CSV of counts: requests in each interval.

Columns `start_s` (or `timestamp`, …) and `requests` (or `count`, …); the step is the smallest one between
rows. An interval that is absent between two others had none. One whose row cannot be used is not known,
which is not the same: it is not-a-number. With `requests` alone, a row an interval, the length of an interval
must be told.

Who forecasts is stricter, and asks for gaps: then a row marked as `filled` is not known either, for nobody
counted it; a row without a count is a gap, and no fault; and an absent interval is not known, unless zero is
what its absence must mean: the file has no row of zero, and has rows of one.
"""

from array import array
from math import isfinite, nan

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic_file_durations import LineUnusable, any_time, calendar_start
from autoscaler.telemetry.traffic_file_fields import header_of, row_of
from forecasting.series import Series

INTERVALS_MAX = 50_000_000
"""Of a file; a year and a half of seconds."""
_START_NAMES = ("start_s", "start", "time", "timestamp", "ts", "datetime", "date", "ds")
_COUNT_NAMES = ("requests", "count", "counts", "hits", "value", "y")
_NO_COUNT = ("", "-", "nan", "na", "null", "none")


class CountsTable:
    """Takes the rows of a CSV of counts."""

    name = "CSV of counts"

    def __init__(self, header: str, interval: float | None, gaps: bool = False) -> None:
        self._delimiter, columns = header_of(header)
        self._requests = next(columns.index(name) for name in _COUNT_NAMES if name in columns)
        self._gaps = gaps
        self._start = next((columns.index(name) for name in _START_NAMES if name in columns), None)
        self._filled = columns.index("filled") if "filled" in columns else None
        self._interval = interval
        self._starts, self._counts = array("d"), array("d")
        self._filled_count = 0

    @staticmethod
    def fits(header: str) -> bool:
        """Whether `header` names counts."""
        columns = set(header_of(header)[1])
        # Other names mean counts only beside a time, and not beside what single requests have.
        timed = bool(columns & set(_START_NAMES)) and bool(columns & set(_COUNT_NAMES))
        return "requests" in columns or (timed and len(columns) == 2)

    def take(self, line: str) -> None:
        """Take in a row; one whose count cannot be used leaves a gap, and raises LineUnusable."""
        row = row_of(line, self._delimiter)
        if self._start is not None:
            start = any_time(_cell(row, self._start))[0]
            if self._starts and start <= self._starts[-1]:
                raise LineUnusable("the time does not come after that of the row before")
            self._starts.append(start)
        self._counts.append(nan)
        cell = _cell(row, self._requests)
        if self._gaps and cell.lower() in _NO_COUNT:
            return
        count = _count(cell)
        filled = self._filled is not None and _cell(row, self._filled) == "1"
        self._filled_count += filled
        if not (filled and self._gaps):
            self._counts[-1] = count

    def demand(self) -> tuple[Series, tuple[str, ...]]:
        """Return the counts, evenly spaced."""
        if not np.isfinite(self._counts).any():
            raise UsageError("has no row that can be used")
        notes = []
        if self._filled_count:
            notes.append(f"{self._filled_count:,} intervals are marked as filled in: nobody counted them")
        if self._start is None:
            return self._without_times(), tuple(notes)
        if len(self._starts) < 2:
            raise UsageError(f"has {len(self._starts)} interval; at least 2 are needed to tell their length")
        steps = np.diff(self._starts)
        interval = float(steps.min())
        if not np.allclose(steps / interval, np.round(steps / interval), atol=1e-3):
            raise UsageError(f"the times must ascend in even steps; the smallest step is {interval:g} s")
        span = self._starts[-1] - self._starts[0]
        if span / interval > INTERVALS_MAX:
            raise UsageError(
                f"spans {span:,.10g} s in steps of {interval:g} s, more than the {INTERVALS_MAX:,} "
                "intervals that can be held; cut it, or mend the times"
            )
        places = np.round((np.array(self._starts) - self._starts[0]) / interval).astype(np.int64)
        told = np.array(self._counts)
        absent = nan if self._gaps and ((told == 0).any() or not (told == 1).any()) else 0.0
        counts = np.full(places[-1] + 1, absent)
        counts[places] = told
        start = calendar_start(self._starts[:1].tolist())
        return Series(counts, interval, 0.0 if np.isnan(start) else start), tuple(notes)

    def _without_times(self) -> Series:
        if self._interval is None:
            raise UsageError(
                "has counts and no times; say how long a row counted, as --interval 1s (to forecast: --step)"
            )
        return Series(np.array(self._counts), self._interval)


def _cell(row: list[str], column: int) -> str:
    if column >= len(row):
        raise LineUnusable("too few columns")
    return row[column].strip()


def _count(text: str) -> float:
    try:
        count = float(text)
    except ValueError:
        raise LineUnusable("the count is no number") from None
    if not (isfinite(count) and count >= 0):
        raise LineUnusable("the count is not a finite number >= 0")
    return count
