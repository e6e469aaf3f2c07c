"""Arrivals in even bins of calendar time: what a forecast is fitted on.

Bins are aligned to the calendar, so that a restart continues them. A bin that was not watched for most of
its length is missing (NaN), which is not zero; one watched for nearly all of it is scaled up to the whole.
"""

from collections import deque
from math import floor, nan

import numpy as np
from numpy.typing import NDArray

_WATCHED_ENOUGH = 0.9  # of a bin


class ArrivalHistory:
    """Counts per bin of `interval` seconds, at most `bins_max` of them, and the bin that is still open."""

    def __init__(self, interval: float, bins_max: int) -> None:
        self.interval = interval
        self._counts: deque[float] = deque(maxlen=bins_max)
        self._open: int | None = None  # number of the open bin, counted from the epoch
        self._arrivals = self._watched = 0.0

    def add(self, arrivals: float, length: float, end_wall_time: float) -> list[float]:
        """Take in what came in the `length` seconds before `end_wall_time`.

        Returns
        -------
        list of float
            Counts of the bins that this has closed, oldest first; NaN for a missing one.
        """
        closed: list[float] = []
        start = end_wall_time - length
        while length > 0:
            number = floor(start / self.interval + 1e-9)
            if self._open is None:
                self._open = number
            while self._open < number:
                closed.append(self._close())
            part = min(length, (number + 1) * self.interval - start)
            share = arrivals * part / length
            self._arrivals += share
            self._watched += part
            arrivals, length, start = arrivals - share, length - part, start + part
            if length <= 1e-6 * self.interval:
                break
        return closed

    def _close(self) -> float:
        watched = self._watched / self.interval
        count = self._arrivals / watched if watched >= _WATCHED_ENOUGH else nan
        self._counts.append(count)
        self._arrivals = self._watched = 0.0
        self._open = None if self._open is None else self._open + 1
        return count

    @property
    def open_bin(self) -> int | None:
        """Number of the bin that is filling, counted from the epoch; None before anything came."""
        return self._open

    def counts(self) -> NDArray[np.float64]:
        """Closed bins, oldest first, shape (n,) [requests]."""
        return np.array(self._counts, dtype=np.float64)

    def __len__(self) -> int:
        return len(self._counts)
