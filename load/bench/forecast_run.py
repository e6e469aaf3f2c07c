"""A forecaster's life on a trace: fitted, asked, told; and what the naive ones would have said meanwhile."""

import time
from dataclasses import dataclass

import numpy as np

from forecasting import Chosen, Series
from forecasting.scores import coverage, mae
from load.bench.forecast_cases import Case

FITS_MAX = 60
UPDATES, REPEATS = 500, 5
LEVELS = np.array([0.9, 0.99, 0.1, 0.025, 0.975])


@dataclass(frozen=True, slots=True)
class Said:
    """What was forecast at one step, from all origins.

    Attributes
    ----------
    step : int
        Steps ahead.
    origins : ndarray, shape (n,)
        How many counts were known.
    points : ndarray, shape (n,)
        [requests per interval].
    quantiles : ndarray, shape (n, 5)
        At `LEVELS`.
    came : ndarray, shape (n,)
        NaN = missing.
    """

    step: int
    origins: np.ndarray
    points: np.ndarray
    quantiles: np.ndarray
    came: np.ndarray

    @property
    def mae(self) -> float:
        """[requests per interval]."""
        return mae(self.came, self.points)

    @property
    def coverage(self) -> tuple[float, float]:
        """Of the central 80 % and 95 % [1]."""
        q = self.quantiles
        return coverage(self.came, q[:, 2], q[:, 0]), coverage(self.came, q[:, 3], q[:, 4])


@dataclass(frozen=True, slots=True)
class Run:
    """A forecaster's life on one trace."""

    said: tuple[Said, ...]
    chosen: str
    fit_seconds: float
    update_microseconds: float


def lived(case: Case, series: Series) -> Run:
    """Let the program's forecaster live through a trace."""
    history = series if case.start else None
    counts, steps, warm_up = series.values, case.steps, round(case.warm_up / case.interval)
    forecaster = Chosen(case.season_length, horizon=max(steps))
    out = np.full((len(steps), len(counts), 1 + len(LEVELS)), np.nan)
    fits, names, due = [], [], warm_up
    for t in range(warm_up, len(counts)):
        if t >= due:
            due = t + max(min(case.season_length, t // 20), (len(counts) - warm_up) // FITS_MAX, 1)
            start = time.perf_counter()
            forecaster.fit(counts[:t] if history is None else history[:t])
            fits.append(time.perf_counter() - start)
            names.append(forecaster.name_)
        for k, step in enumerate(steps):
            law = forecaster.at(step)
            out[k, t] = (law.point, *law.quantile(LEVELS))
        forecaster.update(counts[t])
    origins = np.arange(warm_up, len(counts) - max(steps) + 1)
    said = tuple(
        Said(step, origins, out[k, origins, 0], out[k, origins, 1:], counts[origins + step - 1])
        for k, step in enumerate(steps)
    )
    return Run(said, max(set(names), key=names.count), max(fits), _per_update(forecaster, counts))


def _per_update(forecaster: Chosen, counts: np.ndarray) -> float:
    """Time an update takes [µs]: the shortest mean over some hundred, of several."""
    means = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for count in counts[:UPDATES].tolist():
            forecaster.update(count)
        means.append((time.perf_counter() - start) / len(counts[:UPDATES]) * 1e6)
    return min(means)


def naive_mae(case: Case, series: Series, said: Said) -> float:
    """Error of the better of persistence and the seasonal naive ones, over the same counts."""
    counts, errors = series.values, []
    known = np.array(counts)
    gaps = np.isnan(known)
    newest = np.maximum.accumulate(np.where(gaps, 0, np.arange(len(known))))
    known = known[newest]  # a missing count is answered with the last that is known
    for back in (said.step, case.season_length, 7 * case.season_length):
        places = said.origins + said.step - 1 - back
        if back >= said.step and places[0] >= 0:
            errors.append(mae(said.came, known[places]))
    return min(errors)
