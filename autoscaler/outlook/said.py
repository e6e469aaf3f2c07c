"""What forecasters say, as arrays: of the intervals that follow, or of the last, a horizon before each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.distribution import PredictiveDistribution
from forecasting.forecaster import Forecaster, History

Floats = NDArray[np.float64]

RETOLD_MAX = 500
"""Intervals of the end of a series of which is shown what was said of them before."""
QUANTILES = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.99)


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """Distributions of the counts of consecutive intervals, or of the same step ahead from consecutive ones.

    Attributes
    ----------
    first : int
        Which interval of the series the first is of; its length is that after its end.
    means : ndarray, shape (n,)
        [requests per interval].
    quantiles : ndarray, shape (n, n_quantiles)
        At `QUANTILES` [requests per interval].
    """

    first: int
    means: Floats
    quantiles: Floats

    def quantile(self, level: float) -> Floats:
        """Return the quantile `level`, one of `QUANTILES`, of each, shape (n,)."""
        return self.quantiles[:, QUANTILES.index(level)]


def said_of(distributions: list[PredictiveDistribution], first: int) -> Said:
    """Return what `distributions` say of consecutive intervals from `first` on."""
    levels = np.array(QUANTILES)
    quantiles = np.array([each.quantile(levels) for each in distributions])
    means = np.array([each.mean for each in distributions])
    return Said(first, means, quantiles.reshape(-1, len(QUANTILES)))


def retold(forecaster: Forecaster, history: History, counts: Floats, steps: int) -> Said:
    """Return what would have been said of the last intervals, `steps` before each; it is fitted anew."""
    n = len(counts)
    first = max(n - RETOLD_MAX, n // 2 + 1, steps)
    try:
        forecaster.fit(history[: first - steps + 1])
    except ValueError:
        return said_of([], n)
    said = []
    for place in range(first, n):
        said.append(forecaster.at(steps))
        forecaster.update(float(counts[place - steps + 1]))
    return said_of(said, first)
