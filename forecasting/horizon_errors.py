"""How wrong point forecasts have been, by step of the horizon; hence how wrong the next ones may be.

Each interval a forecaster says what it expects 1, 2, 3, … 48 steps ahead; when the count comes, it is
compared with all that was said about it. The squared error e² at a step is modelled by the load μ:

    E[e²] = φ μ + c² μ²          φ >= 1: dispersion of counts (1 = Poisson);  c: relative model error

φ and c come from running sums weighted by 1/μ, so that the total squared error is kept and the busy
hours, which carry it, decide; relative errors of quiet nights, however large, do not. (Mean squared
*relative* errors were tried first elsewhere and doubled the fleet.) A single error counts for at most
`OUTLIER` standard deviations: one spike must not widen the forecasts of weeks. Bad hours come together:
a factor of the variance follows how large the last dozen errors were for their load.

The errors themselves are kept in `PastErrors`, and give the distribution its shape.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from forecasting.distribution import Array, Empirical
from forecasting.forecaster import Stateful
from forecasting.past_errors import PastErrors

Steps = npt.NDArray[np.integer[Any]]
"""Steps ahead, each >= 1."""
Mask = npt.NDArray[np.bool_]

STEPS: Steps = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48])
"""Steps at which errors are kept; between them coefficients are interpolated, beyond the last it holds."""
STEP_MAX = int(STEPS[-1])
COLUMNS = np.arange(len(STEPS))
ONES = np.ones(len(STEPS))
SAID_AT = (np.arange(STEP_MAX)[:, None] - STEPS) % STEP_MAX * len(STEPS) + COLUMNS
"""Where in a table of the last forecasts, a row an interval, those of an interval lie, by its number."""
OUTLIER = 4.0
"""Standard deviations beyond which an error is taken at this bound."""
RELATIVE_ERROR_PRIOR = 0.3
"""c before anything was measured at a step; after n errors it weighs 1/(1 + n²)."""
LOAD_MIN = 0.01
"""A load below this is taken as this in the sums [requests]."""
VOLATILITY_KEPT = 1 - 1 / 12
"""Per count: how much larger errors are than usual is followed over the last dozen."""
VOLATILITY_SHARE = 0.75
"""So much of that is believed."""
DETERMINANT_MIN = 1e-6
"""Below this (relative) the load was too even to tell φ and c apart; all goes to c."""


class HorizonErrors(Stateful):
    """Running second moments of errors, by step ahead.

    Parameters
    ----------
    memory : int
        Intervals after which an error has lost 63 % of its weight, >= 1.
    stride : int
        Of every so-manieth interval the errors themselves are kept, >= 1; see `PastErrors`.
    """

    def __init__(self, memory: int = 1000, stride: int = 1) -> None:
        if memory < 1:
            raise ValueError(f"need memory >= 1 interval, got {memory}")
        self.memory = memory
        self.stride = stride
        self.past_ = PastErrors(len(STEPS), stride)
        self.clock_ = 0
        self.silent_ = 0  # intervals since the last one whose count came
        self.scored_ = False
        self.said_ = np.full((STEP_MAX, len(STEPS)), np.nan)
        self.volatility_ = np.ones(len(STEPS))  # errors² / typical, as are those said
        self.said_volatility_ = np.ones((STEP_MAX, len(STEPS)))
        # Rows: n, Σμ, Σμ², Σμ³, Σe², Σe²μ; a column a step.
        self.sums_ = np.zeros((6, len(STEPS)))

    def score(self, count: float) -> float:
        """Learn from the `count` of the interval that has just ended.

        Returns
        -------
        float
            The largest error of one step ahead that is still to be believed [requests].
        """
        self.scored_ = True
        then = SAID_AT[self.clock_ % STEP_MAX]
        points = self.said_.take(then)
        if self.past_.keeps_next:
            self.past_.add(points, _scale(self.said_volatility_.take(then)), count)
        else:
            self.past_.pass_over()
        known: Mask | None = None
        if math.isnan(points @ ONES):
            known = ~np.isnan(points)
            points = np.where(known, points, 0.0)
        load = np.maximum(points, LOAD_MIN)
        square = load * load
        sums = self.sums_
        typical = (sums[4] + RELATIVE_ERROR_PRIOR**2 * square) / (sums[1] + load) * load
        typical += 1.0
        bounds = OUTLIER**2 * typical
        errors = np.minimum((count - points) ** 2, bounds)
        news = np.array((ONES, load, square, square * load, errors, errors * load))
        followed = VOLATILITY_KEPT * self.volatility_ + (1 - VOLATILITY_KEPT) * (errors / typical)
        learned = sums * (1 - 1 / self.memory) + news
        if known is None:
            self.sums_, self.volatility_ = learned, followed
        else:
            self.sums_ = np.where(known, learned, sums)
            self.volatility_ = np.where(known, followed, self.volatility_)
            if not known[0]:
                return math.inf
        # Not less than the mean over all loads: at night a small error is a large one, and harmless.
        mean_square = float(self.sums_[4, 0] / self.sums_[0, 0])
        return math.sqrt(max(float(bounds[0]), OUTLIER**2 * (mean_square + 1.0)))

    def expect(self, points: Array) -> None:
        """Note what is expected at `STEPS` ahead of now, shape (n_steps,); one interval has passed."""
        self.said_[self.clock_ % STEP_MAX] = points
        self.said_volatility_[self.clock_ % STEP_MAX] = self.volatility_
        self.silent_ = 0 if self.scored_ else self.silent_ + 1
        self.scored_ = False
        self.clock_ += 1

    def distributions(self, points: Array, steps: Steps) -> Iterator[Empirical]:
        """Yield the predictive distribution of each step: its point, and errors of the shape of past ones.

        Parameters
        ----------
        points : Array, shape (n,)
            Point forecasts >= 0 [requests per interval].
        steps : Steps, shape (n,)
            Steps ahead, >= 1.
        """
        steps = steps + self.silent_  # the last known count is so much older
        dispersion, relative = self.coefficients()
        volatility = _scale(self.volatility_)
        phi, c2 = np.interp(steps, STEPS, dispersion), np.interp(steps, STEPS, relative)
        nearest = np.abs(STEPS - np.minimum(steps, STEP_MAX)[:, None]).argmin(axis=1)
        for k, point, spread, error in zip(
            nearest.tolist(), points.tolist(), phi.tolist(), c2.tolist(), strict=True
        ):
            deviations, weights = self.past_.law(k, point, spread, error, float(volatility[k]))
            yield Empirical(point + deviations, weights, said=point)

    def variances(self, means: Array, steps: Steps) -> Array:
        """Return the predictive variance of counts with the given means at the given steps ahead.

        Parameters
        ----------
        means : Array, shape (n,)
            Point forecasts >= 0 [requests per interval].
        steps : Steps, shape (n,)
            Steps ahead, >= 1.
        """
        dispersion, relative = self.coefficients()
        phi, c2 = np.interp(steps, STEPS, dispersion), np.interp(steps, STEPS, relative)
        return np.asarray(phi * means + c2 * means**2)

    def coefficients(self) -> tuple[Array, Array]:
        """Return φ and c² at `STEPS`, each shape (n_steps,).

        A step without enough errors of its own leans on the one before it.
        """
        phi, c2 = _regress(self.sums_)
        count = self.sums_[0]
        dispersion, relative = 1.0, RELATIVE_ERROR_PRIOR**2
        for k in COLUMNS:
            share = count[k] ** 2 / (count[k] ** 2 + 1.0)
            dispersion += share * (phi[k] - dispersion)
            relative += share * (c2[k] - relative)
            phi[k], c2[k] = dispersion, relative
        return phi, c2


def _regress(sums: Array) -> tuple[Array, Array]:
    """Solve e² = φ μ + c² μ² by least squares with weights 1/μ, under φ >= 1 and c² >= 0."""
    _, m1, m2, m3, e2, e2m = sums
    seen = m1 > 0
    m1, m2, m3 = (np.where(seen, m, 1.0) for m in (m1, m2, m3))
    determinant = m1 * m3 - m2**2
    told_apart = determinant > DETERMINANT_MIN * m1 * m3
    determinant = np.where(told_apart, determinant, 1.0)
    phi = np.where(told_apart, (e2 * m3 - e2m * m2) / determinant, 1.0)
    c2 = (m1 * e2m - m2 * e2) / determinant
    only_dispersion = told_apart & (c2 < 0)
    phi = np.maximum(np.where(only_dispersion, e2 / m1, phi), 1.0)
    c2 = np.where(told_apart & (phi > 1), c2, (e2 - m1) / m2)
    return np.where(seen, phi, 1.0), np.where(seen & ~only_dispersion, np.maximum(c2, 0.0), 0.0)


def _scale(volatility: Array) -> Array:
    """Return the factor of the variance: nearer to lately, which is noisy, than to usual."""
    return np.asarray(1.0 + VOLATILITY_SHARE * (volatility - 1.0))
