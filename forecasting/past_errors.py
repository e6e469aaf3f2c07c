"""The shape of the errors of point forecasts: what came, beside what had been said of it.

Variances say how wide a distribution is, and not how it leans or how heavy its tails are; real traffic
does both. So a sample of forecasts and outcomes is kept, evenly over the time that was learned from. Each
error is divided by the standard deviation that belonged to its load, and multiplied by the one that
belongs to the load now: split conformal prediction, with the variance as its yardstick. Errors made at a
like load weigh more: at night counts are few and lean upwards, by day they are many and do not.

Nodes of a normal distribution stand in while few errors are known, and weigh little later.

Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, *J. Am. Stat. Assoc.* 113 (2018), for the scaled residuals.
"""

import numpy as np
from scipy import special

from forecasting.distribution import Array
from forecasting.forecaster import Stateful

PAST = 720
"""Forecasts kept, the newest; the 99 % quantile rests on the seven largest errors."""
LOAD_RATIO = 2.0
"""An error made at a load this many times as high or low weighs half."""
PRIOR_WEIGHT = 10.0
"""So many errors do the normal nodes weigh."""
PRIOR_NODES: Array = special.ndtri((np.arange(30) + 0.5) / 30)
ERROR_MAX = 1e3
"""Standard deviations, at most."""


class PastErrors(Stateful):
    """A sample of point forecasts and of what came.

    Parameters
    ----------
    steps : int
        Steps of the horizon that are kept, >= 1.
    stride : int
        Every so-manieth interval is kept, >= 1.
    """

    def __init__(self, steps: int, stride: int = 1) -> None:
        if steps < 1 or stride < 1:
            raise ValueError(f"need steps, stride >= 1, got {steps}, {stride}")
        self.steps = steps
        self.stride = stride
        self.offered_ = 0
        self.said_ = np.full((PAST, steps), np.nan)
        self.came_ = np.full(PAST, np.nan)

    def add(self, points: Array, count: float) -> None:
        """Keep what was said of an interval at each step, shape (steps,), and the count that came."""
        if self.offered_ % self.stride == 0:
            place = self.offered_ // self.stride % PAST
            self.said_[place], self.came_[place] = points, count
        self.offered_ += 1

    def nodes(self, step: int, dispersion: float, relative: float) -> tuple[Array, Array]:
        """Return standardized errors in ascending order and the loads at which they were made.

        Parameters
        ----------
        step : int
            Column of the step ahead.
        dispersion, relative : float
            φ and c² of the variance φ μ + c² μ² at this step.
        """
        said, came = self.said_[:, step], self.came_
        known = ~(np.isnan(said) | np.isnan(came))
        said, came = said[known], came[known]
        scale = np.sqrt(dispersion * said + relative * said**2 + 1.0)
        errors = np.clip((came - said) / scale, -ERROR_MAX, ERROR_MAX)
        order = np.argsort(errors)
        return errors[order], said[order]


def weights(loads: Array, load: float) -> Array:
    """Return how much errors made at `loads` say of one at `load` [1], shape (n,)."""
    distance = np.log((loads + 1.0) / (load + 1.0)) / np.log(LOAD_RATIO)
    return np.asarray(1 / (1 + distance**2))
