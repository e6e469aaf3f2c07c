"""Service-time laws, each by its mean and squared coefficient of variation. Randomness comes in as `rng`."""

import math
from collections.abc import Callable

import numpy as np

ServiceLaw = Callable[[np.random.Generator], float]
"""Draws one service time [s]."""


def deterministic(mean: float) -> ServiceLaw:
    """Return the law that always takes `mean` [s]; SCV 0."""
    _check(mean, 0.0)
    return lambda rng: mean


def exponential(mean: float) -> ServiceLaw:
    """Return the exponential law; SCV 1."""
    _check(mean, 1.0)
    return lambda rng: float(rng.exponential(mean))


def lognormal(mean: float, scv: float) -> ServiceLaw:
    """Return the lognormal law of this mean [s] and SCV [1]: σ² = ln(1 + scv), μ = ln(mean) − σ²/2."""
    _check(mean, scv)
    if mean == 0 or scv == 0:
        return deterministic(mean)
    variance = math.log1p(scv)
    location, scale = math.log(mean) - variance / 2, math.sqrt(variance)
    return lambda rng: float(rng.lognormal(location, scale))


def _check(mean: float, scv: float) -> None:
    if not (0 <= mean < math.inf and 0 <= scv < math.inf):
        raise ValueError(f"need finite mean, scv >= 0, got {mean}, {scv}")
