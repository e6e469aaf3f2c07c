"""A normal quantity that cannot be negative; exact also where zero lies far out in its upper tail."""

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from forecasting.distribution import MEAN_MAX, SCV_MIN, Array, PredictiveDistribution

TAIL_ALPHA = 30.0
"""From here on (standard deviations below zero) moments come from their asymptotic series."""


@dataclass(frozen=True)
class TruncatedNormal(PredictiveDistribution):
    """A normal quantity, given that it is not negative.

    Parameters
    ----------
    location : float
        Mean of the normal before truncation; may be negative.
    scale : float
        Its standard deviation >= 0; below one millionth of |location| it is a point at max(location, 0).

    Notes
    -----
    With α = -location/scale and λ = φ(α)/Φ(-α): mean = location + scale λ, variance =
    scale² (1 + αλ - λ²). Johnson, Kotz and Balakrishnan, *Continuous Univariate Distributions* 1
    (1994), ch. 13. Far below zero these cancel, and the asymptotic series in 1/α takes over.
    """

    location: float
    scale: float
    mean: float = field(init=False)
    variance: float = field(init=False)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.location) and np.isfinite(self.scale) and self.scale >= 0):
            raise ValueError(f"need a finite location and scale >= 0, got {self.location}, {self.scale}")
        object.__setattr__(self, "location", float(np.clip(self.location, -MEAN_MAX, MEAN_MAX)))
        object.__setattr__(self, "scale", float(min(self.scale, MEAN_MAX)))
        mean, variance = self._moments()
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", variance)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return `size` draws."""
        return self._quantile(rng.random(size))

    def _point(self) -> bool:
        return bool(self.scale <= np.sqrt(SCV_MIN) * abs(self.location))

    def _moments(self) -> tuple[float, float]:
        if self._point():
            return max(self.location, 0.0), 0.0
        alpha = -self.location / self.scale
        if alpha > TAIL_ALPHA:
            u = alpha**-2
            mean = self.scale / alpha * (1 - 2 * u + 10 * u**2 - 74 * u**3)
            return mean, (self.scale / alpha) ** 2 * (1 - 6 * u + 50 * u**2 - 518 * u**3)
        hazard = float(np.exp(-(alpha**2) / 2 - special.log_ndtr(-alpha)) / np.sqrt(2 * np.pi))
        mean = self.location + self.scale * hazard
        return max(mean, 0.0), max(self.scale**2 * (1 + alpha * hazard - hazard**2), 0.0)

    def _log_sf(self, x: Array) -> Array:
        alpha = -self.location / self.scale
        if alpha > TAIL_ALPHA:
            step = x / self.scale
            return np.asarray(_log_mills_ratio(alpha, step) - alpha * step - step**2 / 2)
        z = (x - self.location) / self.scale
        return np.asarray(special.log_ndtr(-z) - special.log_ndtr(-alpha))

    def _cdf(self, x: Array) -> Array:
        if self._point():
            return np.where(x >= self.mean, 1.0, 0.0)
        return np.asarray(-np.expm1(self._log_sf(x)))

    def _sf(self, x: Array) -> Array:
        if self._point():
            return np.where(x >= self.mean, 0.0, 1.0)
        return np.asarray(np.exp(self._log_sf(x)))

    def _quantile(self, p: Array) -> Array:
        if self._point():
            return np.where(p > 0, self.mean, 0.0)
        alpha = -self.location / self.scale
        if alpha > TAIL_ALPHA:  # solve -log_sf = α s + s²/2 - ratio for s; the ratio hardly moves
            step = np.zeros_like(p)
            for _ in range(4):
                rest = np.maximum(_log_mills_ratio(alpha, step) - np.log1p(-p), 0.0)
                step = 2 * rest / (alpha + np.sqrt(alpha**2 + 2 * rest))
            return np.asarray(step * self.scale)
        z = special.ndtri_exp(special.log_ndtr(-alpha) + np.log1p(-p))
        return np.asarray(np.where(p > 0, np.maximum(self.location - self.scale * z, 0.0), 0.0))


def _log_mills_ratio(alpha: float, step: Array) -> Array:
    """Return log(m(α + step) / m(α)) with m(z) = Φ(-z) / φ(z): what is left when the exponents cancel."""
    root2 = np.sqrt(2.0)
    return np.asarray(np.log(special.erfcx((alpha + step) / root2) / special.erfcx(alpha / root2)))
