"""Whether something grows: the slope of a line through its samples, with a confidence interval. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

BLOCKS = 20
"""Samples are averaged in so many blocks, whose means are nearly independent of each other."""

WARM_UP = 0.2
"""Caches and pools fill at first: this fraction of a run says nothing [1]."""

CONFIDENCE = 0.99


@dataclass(frozen=True)
class Slope:
    """How something changed; per hour."""

    mean: float
    """Of the samples themselves."""
    per_hour: float
    low: float
    high: float
    hours: float
    """Watched for so long, without the warm-up [h]."""

    def grows(self, more_than: float) -> bool:
        """Whether it certainly grew, and while it was watched by more than `more_than` of its mean."""
        return self.low > 0 and self.per_hour * self.hours > more_than * max(self.mean, 1.0)


def slope(times: NDArray[np.float64], values: NDArray[np.float64]) -> Slope:
    """Fit a line by least squares to the means of blocks.

    Parameters
    ----------
    times : ndarray, shape (n,)  [s]
        Ascending.
    values : ndarray, shape (n,)

    Raises
    ------
    ValueError
        If there are fewer samples than blocks after the warm-up.

    Examples
    --------
    >>> slope(np.arange(100.0), 7.0 + np.arange(100.0) / 3600).per_hour
    1.0
    """
    counted = slice(int(WARM_UP * len(times)), None)
    if len(times[counted]) < BLOCKS:
        raise ValueError(f"need {BLOCKS} samples after the warm-up, got {len(times[counted])}")
    hours = np.array([part.mean() for part in np.array_split(times[counted], BLOCKS)]) / 3600.0
    means = np.array([part.mean() for part in np.array_split(values[counted], BLOCKS)])
    line = stats.linregress(hours, means)
    stderr = np.nan_to_num(line.stderr)  # of what never changes it is not a number
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, BLOCKS - 2) * stderr)
    steepness = round(float(line.slope), 9)
    watched = float(np.ptp(times[counted])) / 3600.0
    return Slope(float(values[counted].mean()), steepness, steepness - half, steepness + half, watched)
