"""Linear regression by step of the horizon: robust, held near a prior, and judged only on what came after.

    y ≈ offset + x · (prior + b)        min Σ w ρ(y - …) + λ s² |b|²

with ρ Huber's loss, so that one spike does not decide, s the size of the first feature, and one b per step
ahead. The penalty keeps b near the prior while little is known, which is why it may serve after a day.

Errors on the data that b was estimated from flatter. So the history is cut into blocks, and each block is
predicted with what was known before it: those predictions are as good as the ones to come, no better.

Huber, *Robust Statistics* (1981), ch. 7; Hoerl and Kennard, *Technometrics* 12 (1970), for the penalty.
"""

import numpy as np

from forecasting.distribution import Array
from forecasting.horizon_errors import Steps

PENALTY = 3.0
"""λ: the prior weighs as much as so many intervals."""
ITERATIONS = 3
HUBER = 0.75
"""Errors beyond so many median errors count linearly."""
BLOCK_ENDS = (0, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8)
"""Shares of the history up to which b is estimated, to predict what follows."""
TINY = 1e-12


def stack(features: Array, offsets: Array, came: Array, steps: Steps, prior: Array) -> tuple[Array, Array]:
    """Estimate coefficients, and predict each interval from those before it.

    Parameters
    ----------
    features : Array, shape (n, n_steps, n_features)
        What was known at each interval, by step ahead; NaN where nothing was.
    offsets : Array, shape (n, n_steps)
        What is predicted if all features are zero.
    came : Array, shape (n,)
        What came in each interval; NaN = missing.
    steps : Steps, shape (n_steps,)
        Steps ahead, >= 1: the prediction made at t for step h is of `came[t + h]`.
    prior : Array, shape (n_steps, n_features)
        Coefficients before anything was seen.

    Returns
    -------
    coefficients : Array, shape (n_steps, n_features)
        Estimated from all.
    predictions : Array, shape (n, n_steps)
        Of each interval with the coefficients known before its block.
    """
    n, ends = len(came), sorted({round(share * len(came)) for share in BLOCK_ENDS})
    coefficients = prior.copy()
    predictions = np.empty_like(offsets)
    for column, step in enumerate(steps.tolist()):
        x, offset = features[:, column], offsets[:, column]
        target = np.full(n, np.nan)
        target[: max(n - step, 0)] = came[step:]
        rest = target - offset - x @ prior[column]
        usable = ~np.isnan(rest)
        found = np.zeros(x.shape[1])
        for begin, end in zip(ends, [*ends[1:], n], strict=True):
            predictions[begin:end, column] = offset[begin:end] + x[begin:end] @ (prior[column] + found)
            known = usable[: max(end - step, 0)].nonzero()[0]
            found = _solve(x[known], rest[known], found)
        coefficients[column] += found
    return coefficients, predictions


def _solve(x: Array, y: Array, found: Array) -> Array:
    """Return b by iteratively reweighted least squares, beginning with `found`."""
    if not len(y):
        return found
    size = float(np.mean(x[:, 0] ** 2)) + 1e-3 * float(np.mean(x**2)) + TINY
    penalty = PENALTY * size * np.eye(x.shape[1])
    for _ in range(ITERATIONS):
        error = np.abs(y - x @ found)
        weights = 1 / np.maximum(error / (float(np.median(error)) + TINY), HUBER)
        weighted = x * weights[:, None]
        found = np.asarray(np.linalg.solve(weighted.T @ x + penalty, weighted.T @ y), dtype=float)
    return found
