"""What a forecast says: a distribution of the count that will come, not one number.

All distributions here live on [0, ∞), have a finite mean and variance, and answer the same five
questions. Where they come from:

- `NegativeBinomial`: counts whose rate is itself uncertain. A Poisson count with a Gamma distributed
  rate is exactly this, so forecast error and counting noise are one distribution; `intensity()`
  takes them apart again.
- `Gamma`: a rate, or a ratio of rates.
- `TruncatedNormal`, in its own file: a quantity with a symmetric error that cannot be negative.
- `Empirical`: what was seen, heavy tail included.

Very wide or very large ones are held to bounds that keep every answer finite; the bounds lie far
outside of what can be counted.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]

MEAN_MAX = 1e15
"""Counts beyond this are held to it: float64 knows no single counts above 9e15."""
DRAW_MAX = 9e18
"""Greatest rate that counts can be drawn of: they are 64-bit integers."""
SCV_MAX = 1e6
"""Greatest squared coefficient of variation of a rate; wider ones are held to it."""
SCV_MIN = 1e-12
"""A rate surer than this (one part in a million) is taken as known."""


class PredictiveDistribution(ABC):
    """A distribution on [0, ∞).

    Attributes
    ----------
    mean, variance : float
        Finite, >= 0; in the unit of the quantity (counts per interval) and its square.
    """

    mean: float
    variance: float

    @property
    def point(self) -> float:
        """The one number that comes nearest: the mean, unless a forecaster has said another."""
        return self.mean

    @overload
    def cdf(self, x: float) -> float: ...
    @overload
    def cdf(self, x: Array) -> Array: ...
    def cdf(self, x: float | Array) -> float | Array:
        """Return P(X <= x), of one x or of an array of them."""
        values = np.asarray(x, dtype=float)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):  # far out: 0 or 1
            below = np.clip(self._cdf(np.maximum(values, 0.0)), 0.0, 1.0)
        return _like(x, np.where(values < 0, 0.0, below))

    @overload
    def sf(self, x: float) -> float: ...
    @overload
    def sf(self, x: Array) -> Array: ...
    def sf(self, x: float | Array) -> float | Array:
        """Return P(X > x), exact also far out in the tail."""
        values = np.asarray(x, dtype=float)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            above = np.clip(self._sf(np.maximum(values, 0.0)), 0.0, 1.0)
        return _like(x, np.where(values < 0, 1.0, above))

    @overload
    def quantile(self, p: float) -> float: ...
    @overload
    def quantile(self, p: Array) -> Array: ...
    def quantile(self, p: float | Array) -> float | Array:
        """Return the least x with P(X <= x) >= p.

        Raises
        ------
        ValueError
            Unless 0 <= p < 1; so every answer is finite.
        """
        probabilities = np.asarray(p, dtype=float)
        if not np.all((probabilities >= 0) & (probabilities < 1)):
            raise ValueError(f"need 0 <= p < 1, got {p}")
        return _like(p, self._quantile(probabilities))

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return `size` independent draws, shape (size,)."""

    @abstractmethod
    def _cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _sf(self, x: Array) -> Array: ...

    @abstractmethod
    def _quantile(self, p: Array) -> Array: ...


@dataclass(frozen=True)
class NegativeBinomial(PredictiveDistribution):
    """Counts with an uncertain rate; Poisson if the variance does not exceed the mean.

    Parameters
    ----------
    mean : float
        μ >= 0 [requests per interval].
    variance : float
        σ² >= 0. Below the mean it is raised to it (Poisson); above mean + 1e6 * mean² held to that.

    Notes
    -----
    r = μ² / (σ² - μ), P(X <= k) = I_{r/(r+μ)}(r, k + 1), with I the regularized incomplete beta
    function. Johnson, Kemp and Kotz, *Univariate Discrete Distributions* (2005), ch. 5.
    """

    mean: float
    variance: float

    def __post_init__(self) -> None:
        _check_moments(self.mean, self.variance)
        mean = min(self.mean, MEAN_MAX)
        excess = min(self.variance - mean, SCV_MAX * mean**2)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", mean + (excess if excess > SCV_MIN * mean**2 else 0.0))

    def intensity(self) -> "Gamma":
        """Return the distribution of the Poisson mean behind the counts: without the counting noise."""
        return Gamma(self.mean, self.variance - self.mean)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return `size` counts."""
        rates = np.minimum(self.intensity().sample(rng, size), DRAW_MAX)
        return rng.poisson(rates).astype(float)

    def _cdf(self, x: Array) -> Array:
        k, r = np.floor(x), self._shape()
        if np.isinf(r):
            return np.asarray(special.pdtr(k, self.mean))
        return np.asarray(special.betainc(r, k + 1, r / (r + self.mean)))

    def _sf(self, x: Array) -> Array:
        k, r = np.floor(x), self._shape()
        if np.isinf(r):
            return np.asarray(special.pdtrc(k, self.mean))
        return np.asarray(special.betaincc(r, k + 1, r / (r + self.mean)))

    def _quantile(self, p: Array) -> Array:
        """Bisect on the counts; the first bracket is Cantelli's bound on the quantile."""
        spread = np.sqrt(self.variance * p / (1 - p))
        below, above = np.full_like(p, -1.0), np.floor(self.mean + spread) + 1.0
        while np.any(above - below > np.maximum(1.0, 4 * np.spacing(above))):
            middle = np.floor((below + above) / 2)
            enough = self._cdf(np.maximum(middle, 0.0)) >= p
            enough &= middle >= 0
            below, above = np.where(enough, below, middle), np.where(enough, middle, above)
        return above

    def _shape(self) -> float:
        excess = self.variance - self.mean
        return self.mean**2 / excess if excess > 0 else np.inf


@dataclass(frozen=True)
class Gamma(PredictiveDistribution):
    """A positive quantity of which mean and variance are known: a rate, or a ratio of rates.

    Parameters
    ----------
    mean : float
        μ >= 0.
    variance : float
        σ² >= 0; 0 is a point. Held to at most 1e6 * mean².

    Notes
    -----
    Shape k = μ²/σ², scale θ = σ²/μ.
    """

    mean: float
    variance: float

    def __post_init__(self) -> None:
        _check_moments(self.mean, self.variance)
        mean = min(self.mean, MEAN_MAX)
        variance = min(self.variance, SCV_MAX * mean**2)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", variance if variance > SCV_MIN * mean**2 else 0.0)

    def scaled(self, factor: float) -> "Gamma":
        """Return the distribution of `factor` >= 0 times the quantity."""
        return Gamma(self.mean * factor, self.variance * factor**2)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return `size` draws."""
        if self.variance == 0:
            return np.full(size, self.mean)
        return rng.gamma(self.mean**2 / self.variance, self.variance / self.mean, size)

    def _cdf(self, x: Array) -> Array:
        if self.variance == 0:
            return np.where(x >= self.mean, 1.0, 0.0)
        return np.asarray(special.gammainc(self.mean**2 / self.variance, x * (self.mean / self.variance)))

    def _sf(self, x: Array) -> Array:
        if self.variance == 0:
            return np.where(x >= self.mean, 0.0, 1.0)
        return np.asarray(special.gammaincc(self.mean**2 / self.variance, x * (self.mean / self.variance)))

    def _quantile(self, p: Array) -> Array:
        if self.variance == 0:
            return np.where(p > 0, self.mean, 0.0)
        unscaled = special.gammaincinv(self.mean**2 / self.variance, p)
        return np.asarray(unscaled * (self.variance / self.mean))


@dataclass(frozen=True, eq=False)
class Empirical(PredictiveDistribution):
    """Weighted points: what came, or what a model has drawn.

    Parameters
    ----------
    nodes : Array, shape (n_nodes,)
        Values, in any order; a negative one counts as 0.
    weights : Array, shape (n_nodes,)
        Weights >= 0, not all 0; they are scaled to sum 1.
    said : float, optional
        What was forecast as a point, if that is not the mean.
    """

    nodes: Array
    weights: Array
    said: float | None = None
    mean: float = field(init=False)
    variance: float = field(init=False)

    def __post_init__(self) -> None:
        nodes, weights = np.asarray(self.nodes, dtype=float), np.asarray(self.weights, dtype=float)
        if nodes.ndim != 1 or nodes.shape != weights.shape or not nodes.size:
            raise ValueError(f"need as many weights as nodes, and some, got {nodes.shape}, {weights.shape}")
        if not (np.all(np.isfinite(nodes)) and np.all(np.isfinite(weights)) and np.all(weights >= 0)):
            raise ValueError("need finite nodes and finite weights >= 0")
        if not weights.max() > 0:
            raise ValueError("need a weight > 0, all are 0")
        weights = weights / weights.max()
        order = np.argsort(nodes, kind="stable")
        nodes, weights = np.clip(nodes, 0.0, MEAN_MAX)[order], (weights / weights.sum())[order]
        mean = float(nodes @ weights)
        for name, value in (
            ("nodes", nodes),
            ("weights", weights),
            ("mean", mean),
            ("variance", float((nodes - mean) ** 2 @ weights)),
        ):
            object.__setattr__(self, name, value)

    @property
    def point(self) -> float:
        """What was forecast as a point, or the mean."""
        return self.mean if self.said is None else self.said

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return `size` nodes, drawn by weight."""
        return rng.choice(self.nodes, size=size, p=self.weights)

    def _cdf(self, x: Array) -> Array:
        steps = np.concatenate(([0.0], np.cumsum(self.weights)))
        return steps[np.searchsorted(self.nodes, x, side="right")]

    def _sf(self, x: Array) -> Array:
        steps = np.concatenate((np.cumsum(self.weights[::-1])[::-1], [0.0]))
        return steps[np.searchsorted(self.nodes, x, side="right")]

    def _quantile(self, p: Array) -> Array:
        steps = np.cumsum(self.weights)
        steps[-1] = 1.0
        return np.where(p > 0, self.nodes[np.searchsorted(steps, p, side="left")], 0.0)


def _check_moments(mean: float, variance: float) -> None:
    if not (np.isfinite(mean) and np.isfinite(variance) and mean >= 0 and variance >= 0):
        raise ValueError(f"need a finite mean and variance >= 0, got {mean}, {variance}")


def _like(given: float | Array, answer: Array) -> float | Array:
    """Answer an array with an array, a number with a number."""
    return answer if isinstance(given, np.ndarray) else float(answer)
