"""Rolling origin: at each count forecast first, learn then; score each step of the horizon by itself.

The forecasters are fitted once, on the warm-up, and live through the rest as they would in service. Only
steps that are asked for are scored, so the horizon that matters can be looked at alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forecasting.distribution import Array
from forecasting.forecaster import Forecaster, History, checked_history
from forecasting.naive import Persistence, SeasonalNaive
from forecasting.scores import coverage, crps, mae, pinball

CRPS_LEVELS = 20
"""Quantiles by which a distribution is scored as a whole."""
LEVELS = np.concatenate(([0.9, 0.99, 0.1, 0.025, 0.975], (np.arange(CRPS_LEVELS) + 0.5) / CRPS_LEVELS))


@dataclass(frozen=True, slots=True)
class StepScore:
    """How a forecaster did at one step ahead.

    Attributes
    ----------
    step : int
        Steps ahead.
    forecasts : int
        Forecasts scored: those whose count came and is known.
    mae, pinball_90, pinball_99, crps : float
        Mean losses [requests per interval]; of points: what the forecaster said as one number.
    pinball_90_error : float
        Standard error of `pinball_90`, were the forecasts independent of each other.
    coverage_80, coverage_95 : float
        Fraction of counts inside the central 80 % and 95 % interval [1].
    """

    step: int
    forecasts: int
    mae: float
    pinball_90: float
    pinball_99: float
    pinball_90_error: float
    crps: float
    coverage_80: float
    coverage_95: float


def backtest(
    forecasters: Mapping[str, Forecaster],
    history: History,
    steps: Sequence[int],
    warm_up: int,
    stride: int = 1,
) -> dict[str, tuple[StepScore, ...]]:
    """Score forecasters on the counts after the warm-up.

    Parameters
    ----------
    forecasters : mapping of name to Forecaster
        They are fitted to the warm-up here, and have lived through `history` afterwards.
    history : Array, shape (n_intervals,), or Series
        Counts, oldest first; NaN = missing, and not scored.
    steps : sequence of int
        Steps ahead to score, each >= 1.
    warm_up : int
        Counts to fit to before the first forecast, >= 1.
    stride : int
        Forecast only at every so-manieth count, >= 1: quicker, on fewer forecasts.

    Returns
    -------
    dict
        By name, a score per step in the order of `steps`. All are over the same counts.

    Raises
    ------
    ValueError
        If the history does not reach beyond warm-up and horizon, or a forecaster cannot fit the warm-up.
    """
    counts = checked_history(history)
    if not steps or min(steps) < 1 or warm_up < 1 or stride < 1:
        raise ValueError(f"need steps, warm_up, stride >= 1, got {list(steps)}, {warm_up}, {stride}")
    origins = range(warm_up, len(counts) - max(steps) + 1, stride)
    if not origins:
        raise ValueError(f"need more than {warm_up + max(steps) - 1} counts, got {len(counts)}")
    return {name: _score(each, history, counts, steps, origins) for name, each in forecasters.items()}


def with_baselines(forecaster: Forecaster, season_length: int) -> dict[str, Forecaster]:
    """Return the forecaster beside what it must beat: the last value and the same time last season."""
    return {
        type(forecaster).__name__: forecaster,
        "Persistence": Persistence(),
        "SeasonalNaive": SeasonalNaive(season_length),
    }


def _score(
    forecaster: Forecaster, history: History, counts: Array, steps: Sequence[int], origins: range
) -> tuple[StepScore, ...]:
    said = np.empty((len(steps), len(origins), 1 + len(LEVELS)))
    forecaster.fit(history[: origins.start])
    for t in range(origins.start, len(counts)):
        if t in origins:
            for k, step in enumerate(steps):
                distribution = forecaster.at(step)
                said[k, origins.index(t), 0] = distribution.point
                said[k, origins.index(t), 1:] = distribution.quantile(LEVELS)
        forecaster.update(counts[t])
    at = np.array(origins)
    return tuple(_step_score(step, counts[at + step - 1], said[k]) for k, step in enumerate(steps))


def _step_score(step: int, actual: Array, said: Array) -> StepScore:
    point, q90, q99, q10, q025, q975 = said[:, :6].T
    return StepScore(
        step=step,
        forecasts=int((~np.isnan(actual)).sum()),
        mae=mae(actual, point),
        pinball_90=pinball(actual, q90, 0.9),
        pinball_99=pinball(actual, q99, 0.99),
        pinball_90_error=_standard_error(actual, q90, 0.9),
        crps=crps(actual, said[:, 6:]),
        coverage_80=coverage(actual, q10, q90),
        coverage_95=coverage(actual, q025, q975),
    )


def _standard_error(actual: Array, quantiles: Array, p: float) -> float:
    known = ~np.isnan(actual)
    over = (actual - quantiles)[known]
    losses = np.maximum(p * over, (p - 1) * over)
    return float(losses.std() / np.sqrt(max(len(losses), 1))) if len(losses) else math.nan
