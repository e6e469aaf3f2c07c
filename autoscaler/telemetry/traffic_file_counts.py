"""A CSV of counts: requests in each interval.

Columns `start_s` and `requests`; the step is the smallest one between rows. An interval that is absent
between two others had no requests. One whose row cannot be used is not known, which is not the same: it is
not-a-number. With `requests` alone, a row an interval, the length of an interval must be told.
"""

from array import array
from math import isfinite, nan

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic_file_durations import LineUnusable, any_time, calendar_start
from autoscaler.telemetry.traffic_file_fields import header_of, row_of
from forecasting.series import Series

_START_NAMES = ("start_s", "start", "time", "timestamp")


class CountsTable:
    """Takes the rows of a CSV of counts."""

    name = "CSV of counts"

    def __init__(self, header: str, interval: float | None) -> None:
        self._delimiter, columns = header_of(header)
        self._requests = columns.index("requests")
        self._start = next((columns.index(name) for name in _START_NAMES if name in columns), None)
        self._filled = columns.index("filled") if "filled" in columns else None
        self._interval = interval
        self._starts, self._counts = array("d"), array("d")
        self._filled_count = 0

    @staticmethod
    def fits(header: str) -> bool:
        """Whether `header` names counts."""
        return "requests" in header_of(header)[1]

    def take(self, line: str) -> None:
        """Take in a row; one whose count cannot be used leaves a gap, and raises LineUnusable."""
        row = row_of(line, self._delimiter)
        if self._start is not None:
            start = any_time(_cell(row, self._start))[0]
            if self._starts and start <= self._starts[-1]:
                raise LineUnusable("the time does not come after that of the row before")
            self._starts.append(start)
        self._counts.append(nan)
        self._counts[-1] = _count(_cell(row, self._requests))
        self._filled_count += self._filled is not None and _cell(row, self._filled) == "1"

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
        places = np.round((np.array(self._starts) - self._starts[0]) / interval).astype(np.int64)
        counts = np.zeros(places[-1] + 1)
        counts[places] = self._counts
        start = calendar_start(self._starts[:1].tolist())
        return Series(counts, interval, 0.0 if np.isnan(start) else start), tuple(notes)

    def _without_times(self) -> Series:
        if self._interval is None:
            raise UsageError(
                "has counts and no times; say how long a row counted, with --interval 1s, for example"
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
