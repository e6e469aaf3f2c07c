"""What the throughput planner expects of its next interval: as before, an ARIMA model, or Prophet's trend.

Restated from `planner/core/load/predictors.py` of ai-dynamo/dynamo. All predict one interval ahead and say
the last value until they have seen five.

`Constant` says the last value. `Arima` stands for pmdarima's `auto_arima`: differences until the KPSS test
finds a level, then the orders up to (2, 2), with or without a drift, of the least AIC; where neither
autoregression nor moving average is found, logarithms are tried instead. The orders stay; the coefficients,
which the original adapts at every value, are fitted anew each hour over the last day. `TrendOfProphet`
stands for Prophet with its defaults over the planner's window of 50 intervals, two and a half hours: its
model of a piecewise linear trend, 25 possible bends in the first 80 %, each held near none. Prophet's prior
of Laplace is replaced by a normal one of the same variance, which has a solution in closed form. Seasons
come in as they do there, once the window spans two of them: with the default window there are none.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from statsmodels.tsa.arima.model import ARIMA, ARIMAResults
from statsmodels.tsa.stattools import kpss

Floats = NDArray[np.float64]

VALUES_MIN = 5
FIRST_FIT_MAX = 100  # values that the orders are chosen from
FITTED_MAX, REFIT_EVERY = 480, 20  # a day, an hour
ORDER_MAX, DIFFERENCES_MAX, KPSS_LEVEL = 2, 2, 0.05
WINDOW = 50
BENDS, BENDS_WITHIN, BEND_SCALE = 25, 0.8, 0.05
DAY, DAY_ORDER = 86_400.0, 4
WEEK, WEEK_ORDER = 7 * DAY, 3
SEASON_SCALE = 10.0


class Predictor(Protocol):
    """Takes in counts, one an interval, and says the next."""

    def add(self, count: float) -> None:
        """Take in the count of the interval that has ended."""

    def next(self) -> float:
        """Expected count of the coming interval, >= 0."""


class Constant:
    """As many as in the last interval."""

    def __init__(self) -> None:
        self._last = 0.0

    def add(self, count: float) -> None:
        """Remember it."""
        self._last = count

    def next(self) -> float:
        """Say it."""
        return self._last


class Arima:
    """An ARIMA model: its shape is found once, its coefficients every hour."""

    def __init__(self) -> None:
        self._counts: list[float] = []
        self._known = 0  # of the counts, those the model has taken in
        self._fitted_at = 0
        self._shape: Shape | None = None
        self._model: ARIMAResults | None = None

    def add(self, count: float) -> None:
        """Take it in."""
        self._counts.append(count)

    def next(self) -> float:
        """Carry the model forward, and forecast a step."""
        if len(self._counts) < VALUES_MIN or len(set(self._counts)) == 1:
            return self._counts[-1] if self._counts else 0.0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of convergence; the original silences them too
                return self._forecast()
        except (ValueError, np.linalg.LinAlgError):
            return self._counts[-1]

    def _forecast(self) -> float:
        if self._shape is None:
            self._shape = _best_shape(tuple(self._counts[-FIRST_FIT_MAX:]))
        shape, new = self._shape, len(self._counts) - self._known
        if self._model is None or len(self._counts) - self._fitted_at >= REFIT_EVERY:
            self._model = _fitted(tuple(self._counts[-FITTED_MAX:]), shape)
            self._fitted_at = len(self._counts)
        elif new:
            self._model = self._model.extend(shape.differenced(self._counts[-new - shape.differences :]))
        self._known = len(self._counts)
        return shape.restored(float(self._model.forecast(1)[0]), self._counts)


@dataclass(frozen=True, slots=True)
class Shape:
    """Which model: of the counts or their logarithms, how often differenced, with which orders and level.

    The differences are taken here, so that to the model a drift is a mean: statsmodels 0.15 loses the place
    of a trend when a model is extended.
    """

    logarithms: bool
    differences: int
    order: tuple[int, int]
    mean: bool

    def differenced(self, counts: Sequence[float]) -> Floats:
        """What the model sees."""
        return np.diff(np.log1p(counts) if self.logarithms else np.array(counts), self.differences)

    def restored(self, forecast: float, counts: Sequence[float]) -> float:
        """The count, >= 0, that follows `counts` if the model's forecast comes true."""
        last = np.log1p(counts[-2:]) if self.logarithms else np.array(counts[-2:])
        value = forecast + (0.0, last[-1], 2 * last[-1] - last[0])[self.differences]
        return max(0.0, float(np.expm1(value) if self.logarithms else value))


def _best_shape(counts: tuple[float, ...]) -> Shape:
    """Return the shape of least AIC; if that has no order at all, the one for logarithms."""
    best = _best_of(counts, logarithms=False)
    return best if any(best.order) else _best_of(counts, logarithms=True)


def _best_of(counts: tuple[float, ...], logarithms: bool) -> Shape:
    values, differences = np.log1p(counts) if logarithms else np.array(counts), 0
    while differences < DIFFERENCES_MAX and kpss(np.diff(values, differences))[1] < KPSS_LEVEL:
        differences += 1
    shapes = [
        Shape(logarithms, differences, (p, q), mean)
        for p, q in product(range(ORDER_MAX + 1), repeat=2)
        for mean in ((True,), (False, True), (False,))[differences]
    ]
    return min(shapes, key=lambda shape: float(_fitted(counts, shape).aic))


@lru_cache(maxsize=256)
def _fitted(counts: tuple[float, ...], shape: Shape) -> ARIMAResults:
    """Fit, or remember: a sweep over targets asks for the same fits each time."""
    p, q = shape.order
    return ARIMA(shape.differenced(counts), order=(p, 0, q), trend="c" if shape.mean else "n").fit()


class TrendOfProphet:
    """Prophet's trend, and its seasons where the window holds two of them.

    Parameters
    ----------
    interval : float
        Of a count [s].
    window : int
        Counts that are kept and fitted anew each time [1].
    """

    def __init__(self, interval: float, window: int = WINDOW) -> None:
        self._interval = interval
        self._window = window
        self._counts: list[float] = []

    def add(self, count: float) -> None:
        """Take it in; forget what is older than the window."""
        self._counts.append(count)
        del self._counts[: -self._window]

    def next(self) -> float:
        """Fit, and forecast a step."""
        n = len(self._counts)
        if n < VALUES_MIN or not any(self._counts):
            return self._counts[-1] if n else 0.0
        counts = np.array(self._counts)
        scale = float(counts.max())
        design, penalty = self._design(n)
        known, target = design[:n], counts / scale
        line = known[:, :2] @ np.linalg.lstsq(known[:, :2], target, rcond=None)[0]
        noise = max(float(np.var(target - line)), 1e-8)
        weights = np.linalg.solve(known.T @ known + noise * np.diag(penalty), known.T @ target)
        return max(0.0, float(design[n] @ weights) * scale)

    def _design(self, n: int) -> tuple[Floats, Floats]:
        """Columns for n known intervals and the next, shape (n + 1, k), and 1 / variance of each column."""
        time = np.arange(n + 1) / max(1, n - 1)
        bends = np.linspace(0, BENDS_WITHIN, min(BENDS, int(BENDS_WITHIN * n)) + 1)[1:]
        columns = [np.ones(n + 1), time, *(np.maximum(0.0, time - bend) for bend in bends)]
        variances = [25.0, 25.0] + [2 * BEND_SCALE**2] * len(bends)
        for season, order in ((DAY, DAY_ORDER), (WEEK, WEEK_ORDER)):
            if n * self._interval < 2 * season:
                continue
            angle = 2 * np.pi * np.arange(n + 1) * self._interval / season
            columns += [wave(k * angle) for k in range(1, order + 1) for wave in (np.sin, np.cos)]
            variances += [SEASON_SCALE**2] * (2 * order)
        return np.column_stack(columns), 1 / np.array(variances)
