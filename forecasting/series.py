"""Evenly spaced counts with a start and a step; gaps are marked, not filled.

Missing is not zero: a count that nobody took is NaN, and stays NaN when bins are joined.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from forecasting.distribution import Array

RATIO_TOLERANCE = 1e-9
"""How far the ratio of two intervals may be from a whole number, relatively."""


@dataclass(frozen=True, eq=False)
class Series:
    """Counts per interval, oldest first.

    Parameters
    ----------
    values : Array, shape (n,)
        Counts >= 0 [requests per interval]; NaN where none was taken.
    interval : float
        Length of one interval [s], > 0.
    start : float
        Calendar time at which the first interval begins [s since the epoch].
    """

    values: Array
    interval: float
    start: float = 0.0

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=float)
        if values.ndim != 1:
            raise ValueError(f"need values of one dimension, got shape {values.shape}")
        if not (np.isfinite(self.interval) and self.interval > 0):
            raise ValueError(f"need interval > 0 s, got {self.interval}")
        if not np.isfinite(self.start):
            raise ValueError(f"need a finite start, got {self.start}")
        bad = np.flatnonzero(np.isinf(values) | (values < 0))
        if bad.size:
            raise ValueError(
                f"need finite counts >= 0, got {values[bad[0]]} at index {bad[0]}; mark missing ones NaN"
            )
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @classmethod
    def from_counts(
        cls,
        counts: npt.ArrayLike,
        interval: float,
        start: float = 0.0,
        missing: npt.ArrayLike | None = None,
    ) -> Self:
        """Make a series of counts; where `missing` (shape (n,), bool) is true, the count is not believed."""
        values = np.array(counts, dtype=float)
        if missing is not None:
            marks = np.asarray(missing, dtype=bool)
            if marks.shape != values.shape:
                raise ValueError(f"need one mark per count, got shapes {marks.shape} and {values.shape}")
            values[marks] = np.nan
        return cls(values, interval, start)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, part: slice) -> "Series":
        """Return consecutive counts as a series of their own, which begins when the first of them did."""
        first, _, step = part.indices(len(self))
        if step != 1:
            raise ValueError(f"need neighbours, got every {step}th count; use resample to join them")
        return Series(self.values[part], self.interval, self.start + first * self.interval)

    def __repr__(self) -> str:
        gaps = int(np.isnan(self.values).sum())
        return f"<Series n={len(self)} interval={self.interval:g}s start={self.start:.0f} missing={gaps}>"

    @property
    def end(self) -> float:
        """Calendar time at which the last interval ends [s]."""
        return self.start + self.interval * len(self)

    def resample(self, interval: float) -> "Series":
        """Join neighbours into bins of `interval` [s], the first bin at `start`.

        A bin with any missing part is missing; what is left at the end and fills no bin is left out.

        Raises
        ------
        ValueError
            If `interval` is not a whole multiple of the series' own: counts cannot be split.
        """
        ratio = interval / self.interval
        size = round(ratio) if np.isfinite(ratio) else 0
        if size < 1 or abs(ratio - size) > RATIO_TOLERANCE * size:
            raise ValueError(f"need a whole multiple of the interval {self.interval} s, got {interval} s")
        bins = len(self) // size
        joined = self.values[: bins * size].reshape(bins, size).sum(axis=1)
        return Series(joined, self.interval * size, self.start)
