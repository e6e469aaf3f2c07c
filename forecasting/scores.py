"""How good forecasts were: points, quantiles, whole distributions, intervals.

Every score is a mean over the counts that are known (not NaN), in the unit of the counts where nothing
else is said, and smaller is better except for `coverage`, which should be what it promises. With
nothing known a score is NaN.
"""

import math

import numpy as np

from forecasting.distribution import Array


def mae(actual: Array, predicted: Array) -> float:
    """Return the mean absolute error of point forecasts.

    Parameters
    ----------
    actual, predicted : Array, shape (n,)
        Counts that came and that were predicted [requests per interval].
    """
    return _mean(np.abs(_same_shape(actual, predicted) - predicted))


def pinball(actual: Array, quantiles: Array, p: float) -> float:
    """Return the mean pinball loss of forecasts of the quantile `p`.

    Parameters
    ----------
    actual, quantiles : Array, shape (n,)
        Counts that came, and the p-quantiles predicted [requests per interval].
    p : float
        In (0, 1). A count above the quantile costs p per request, one below it 1 - p.

    Notes
    -----
    Koenker and Bassett, *Econometrica* 46 (1978). Its expectation is least at the true quantile.
    """
    if not 0 < p < 1:
        raise ValueError(f"need 0 < p < 1, got {p}")
    above = _same_shape(actual, quantiles) - quantiles
    return _mean(np.maximum(p * above, (p - 1) * above))


def crps(actual: Array, samples: Array) -> float:
    """Return the mean continuous ranked probability score of forecasts given as samples.

    Parameters
    ----------
    actual : Array, shape (n,)
        Counts that came [requests per interval].
    samples : Array, shape (n, n_samples)
        Draws from each forecast; or its quantiles at the levels (i - 1/2) / n_samples.

    Notes
    -----
    E|X - y| - E|X - X'| / 2, with the samples as the distribution. Of a single sample it is the
    absolute error. Gneiting and Raftery, *J. Am. Stat. Assoc.* 102 (2007), eq. 21.
    """
    draws = np.sort(np.asarray(samples, dtype=float), axis=1)
    if draws.ndim != 2 or len(draws) != len(actual) or not draws.shape[1]:
        raise ValueError(f"need samples of shape ({len(actual)}, n_samples), got {draws.shape}")
    n = draws.shape[1]
    distance = np.abs(draws - np.asarray(actual, dtype=float)[:, None]).mean(axis=1)
    # Σᵢⱼ |xᵢ - xⱼ| = 2 Σᵢ (2i - n - 1) xᵢ of sorted x
    spread = draws @ (2 * np.arange(1, n + 1) - n - 1) * 2 / n**2
    return _mean(distance - spread / 2)


def coverage(actual: Array, low: Array, high: Array) -> float:
    """Return the fraction of counts inside their predicted interval [low, high], each shape (n,) [1]."""
    known = ~np.isnan(_same_shape(actual, low))
    _same_shape(actual, high)
    return float(np.mean(((actual >= low) & (actual <= high))[known])) if known.any() else math.nan


def mase(actual: Array, predicted: Array, history: Array, season_length: int = 1) -> float:
    """Return the mean absolute error as a multiple of that of the seasonal naive forecast on `history`.

    Parameters
    ----------
    actual, predicted : Array, shape (n,)
        Counts that came and that were predicted [requests per interval].
    history : Array, shape (n_history,)
        Counts before them.
    season_length : int
        Intervals in a season, >= 1; 1 compares with the value before.

    Notes
    -----
    Hyndman and Koehler, *Int. J. Forecasting* 22 (2006). NaN if the history is shorter than a season and
    one count, or repeats itself exactly.
    """
    if season_length < 1:
        raise ValueError(f"need season_length >= 1, got {season_length}")
    scale = _mean(np.abs(history[season_length:] - history[:-season_length]))
    return mae(actual, predicted) / scale if scale > 0 else math.nan


def _same_shape(actual: Array, predicted: Array) -> Array:
    if np.shape(actual) != np.shape(predicted):
        raise ValueError(f"need one forecast per count, got shapes {np.shape(predicted)}, {np.shape(actual)}")
    return np.asarray(actual, dtype=float)


def _mean(losses: Array) -> float:
    known = ~np.isnan(losses)
    return float(losses[known].mean()) if known.any() else math.nan
