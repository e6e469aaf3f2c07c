"""The shape of the errors of point forecasts: what came, beside what had been said of it.

Variances say how wide a distribution is, and not how it leans or how heavy its tails are; real traffic
does both. So a sample of forecasts and outcomes is kept, evenly over the time that was learned from. Each
error is divided by the standard deviation that belonged to its load and its hour, and multiplied by the
one that belongs to the load now: split conformal prediction with the standard deviation as its yardstick,
or filtered historical simulation, as finance calls it. Newer errors weigh more, and so do those made at a
like load: at night counts are few and lean upwards, by day they are many and do not.

A few errors do not show how large the next may be. So wide normal nodes are mixed in, whose weight falls
from that of many errors to next to nothing.

Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, *J. Am. Stat. Assoc.* 113 (2018), for the scaled residuals;
Barone-Adesi, Giannopoulos and Vosper, *J. Futures Markets* 19 (1999), for the volatility in the scale.
"""

import numpy as np
from scipy import special

from forecasting.distribution import Array
from forecasting.forecaster import Stateful

PAST = 720
"""Forecasts kept, the newest."""
HALF_LIFE = 120.0
"""So many kept forecasts later, an error weighs half."""
LOAD_RATIO = 4.0
"""An error made at a load this many times as high or low weighs half."""
ERROR_MAX = 30.0
"""Standard deviations, at most: what came out of nothing is no measure of what comes on top of much."""
LOAD_MIN = 1.0
"""A load below this varies as this one does [requests]."""
ROUNDING = 1 / 12
"""Variance of whole numbers about what they were rounded from."""
DOUBT_RATIO, DOUBT_ERROR = 2.0, 0.1
"""The normal nodes are as wide as so many standard deviations; with no errors known as this relative one."""
DOUBT_WEIGHT = 30.0
"""They weigh as much as so many errors before any was known, and w²/(w + n) after n."""
DOUBT_NODES: Array = special.ndtri((np.arange(30) + 0.5) / 30)


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
        self.came_ = np.full(PAST, np.nan)
        self.said_ = np.full((PAST, steps), np.nan)
        self.volatility_ = np.ones((PAST, steps))

    @property
    def keeps_next(self) -> bool:
        """Whether the next interval is one of those that are kept."""
        return self.offered_ % self.stride == 0

    def pass_over(self) -> None:
        """Let an interval pass that is not kept."""
        self.offered_ += 1

    def add(self, points: Array, volatility: Array, count: float) -> None:
        """Keep what was said of an interval at each step, how volatile it was then, and what came.

        Parameters
        ----------
        points, volatility : Array, shape (steps,)
            Point forecasts [requests per interval], and the factor of their variance at the time [1].
        count : float
            What came.
        """
        place = self.offered_ // self.stride % PAST
        self.came_[place], self.said_[place], self.volatility_[place] = count, points, volatility
        self.offered_ += 1

    def law(
        self, column: int, point: float, dispersion: float, relative: float, volatility: float
    ) -> tuple[Array, Array]:
        """Return deviations from a point forecast and their weights, each shape (n,).

        Parameters
        ----------
        column : int
            Of the step ahead.
        point : float
            What is forecast now [requests].
        dispersion, relative, volatility : float
            φ, c² and v of the variance v (φ μ + c² μ²) of errors at this step, now.
        """
        said = self.said_[:, column]
        known = np.flatnonzero(~np.isnan(said))
        said, came = said[known], self.came_[known]
        scales = np.sqrt(
            (dispersion * said + relative * said**2) * self.volatility_[known, column] + ROUNDING
        )
        variance = dispersion * max(point, LOAD_MIN) + relative * point**2
        scale = float(variance * volatility) ** 0.5
        errors = np.clip((came - said) / scales, -ERROR_MAX, ERROR_MAX) * scale
        age = (self.offered_ // self.stride - known) % PAST
        distance = np.log((said + 1.0) / (point + 1.0)) / np.log(LOAD_RATIO)
        weights = 0.5 ** (age / HALF_LIFE) / (1 + distance**2)
        ignorance = DOUBT_WEIGHT / (DOUBT_WEIGHT + weights.sum())
        doubt = max(DOUBT_RATIO * scale, DOUBT_ERROR * point * ignorance**2, point**0.5)
        share = np.full(len(DOUBT_NODES), DOUBT_WEIGHT * ignorance / len(DOUBT_NODES))
        return np.concatenate((errors, doubt * DOUBT_NODES)), np.concatenate((weights, share))
