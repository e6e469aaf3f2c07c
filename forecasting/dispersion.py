"""How much counts vary beyond Poisson, measured so that a change of level does not count as noise.

Given the total n = N₁ + N₂ of two neighbours with the same exposure, Poisson counts have
E[(N₁ - N₂)² / n] = 1, exactly, however small n is; overdispersed ones have the index of dispersion φ.
A slow change of the rate cancels in the difference, and a jump is in one difference only.
"""

import math

from forecasting.forecaster import Stateful

SAMPLES_MEMORY = 30
"""Differences after which one has lost 63 % of its weight, unless told otherwise."""
SAMPLES_PRIOR = 5
"""How many differences the assumption of Poisson weighs."""
EXPOSURE_MIN = 1e-6
"""Counts of less exposure than this are not compared."""
OUTLIER = 4.0
"""A difference counts for at most so many standard deviations."""


class Dispersion(Stateful):
    """Index of dispersion φ >= 1 (variance / mean of counts), from differences of neighbours.

    Parameters
    ----------
    memory : float
        Differences after which one has lost 63 % of its weight, >= 5.
    """

    def __init__(self, memory: float = SAMPLES_MEMORY) -> None:
        if not SAMPLES_PRIOR <= memory < math.inf:
            raise ValueError(f"need memory >= {SAMPLES_PRIOR} differences, got {memory}")
        self.memory = memory
        self.mean_ = 1.0
        self.samples_ = float(SAMPLES_PRIOR)
        self.count_ = math.nan
        self.exposure_ = math.nan

    @property
    def value(self) -> float:
        """φ, never below 1 [1]."""
        return max(self.mean_, 1.0)

    def update(self, count: float, exposure: float) -> None:
        """Learn a count and its exposure > 0: its length [s], or what was expected; NaN = missing."""
        before, exposure_before = self.count_, self.exposure_
        self.count_, self.exposure_ = count, exposure
        total = before + count
        if not (total > 0 and exposure_before > EXPOSURE_MIN and exposure > EXPOSURE_MIN):
            return  # missing, or nothing to compare
        rate = total / (exposure_before + exposure)
        if rate == 0:
            return  # subnormal, and no count of anything
        difference = before / exposure_before - count / exposure
        sample = difference**2 / (1 / exposure_before + 1 / exposure) / rate
        self.samples_ = min(self.samples_ + 1, self.memory)
        self.mean_ += (min(sample, OUTLIER**2 * self.value) - self.mean_) / self.samples_
