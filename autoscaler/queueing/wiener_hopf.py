"""A random walk above a level: how often it is where before it falls below, by factoring its law of a step.

Model: a walk on the whole numbers moves by k - b with probability a_k, k = 0, 1, …, downwards on average. It
starts somewhere at or above 0, and ends as soon as it is below. The mean visits x to each number solve
x_j = d_j + sum over i >= 0 of x_i a_(j - i + b), with d the starts: a Toeplitz system without end. Its
symbol f(z) = 1 - sum of a_k z^(k - b) is the product of a series f+ in z and one, f-, in 1 / z (Wiener and
Hopf). So the system is the product of two triangular ones, whose inverses are convolutions.

The factors are the two halves of the logarithm of f, taken on a circle of radius a little above 1, on which
|1 - f| < 1, by the fast Fourier transform. The work is nearly proportional to the numbers visited.

Source: Böttcher and Silbermann, *Introduction to Large Truncated Toeplitz Matrices* (1999), ch. 1.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from autoscaler.queueing.elementwise import Array

DIGITS = 64.0
"""Terms below exp(-64) are left out: factors are exact to rounding."""

GROWTH = 3.0
"""The radius to the power of the furthest start is at most exp(3), so that no start drowns the others."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk, factored.

    `up` and `down` are the coefficients of 1 / f+ and 1 / f- in z / `radius` and its inverse.
    """

    radius: float
    up: Array
    down: Array

    @classmethod
    def of(cls, step: Array, most_down: int, furthest: int) -> "Walk":
        """Factor the law of a step, for starts up to `furthest`.

        `step[k]` is the chance of a step of k - most_down; the mean step must be below 0.
        """
        move = np.arange(len(step)) - most_down
        growth = _growth(step, move, GROWTH / max(furthest, len(step)))
        size = fft.next_fast_len(int(2 * DIGITS / growth) + 2 * (furthest + len(step)), real=True)
        size += size % 2
        symbol = np.zeros(size)
        symbol[move] = -step * np.exp(growth * move)
        symbol[0] += 1.0
        logarithm = fft.irfft(np.log(fft.rfft(symbol)), size)
        half = size // 2
        rising, falling = np.zeros(size), np.zeros(size)
        rising[:half], falling[1:half] = logarithm[:half], logarithm[:half:-1]
        up, down = (fft.irfft(np.exp(-fft.rfft(part)), size)[:half] for part in (rising, falling))
        return cls(float(np.exp(growth)), up, down)

    def entered(self, starts: Array) -> Array:
        """Return what `visits` takes, for chances of the starts; numbers along the last axis.

        It is linear in them, and dearer than `visits` to the first few numbers.
        """
        scaled = starts * self.radius ** np.arange(float(starts.shape[-1]))
        count = starts.shape[-1]
        size = fft.next_fast_len(2 * count, real=True)
        product = fft.rfft(scaled, size) * np.conj(fft.rfft(self.down[:count], size))
        entered: Array = fft.irfft(product, size)[..., :count]
        return entered

    def visits(self, entered: Array, numbers: int) -> Array:
        """Return the mean visits to the numbers from 0 to `numbers` - 1."""
        size = fft.next_fast_len(numbers + min(numbers, entered.shape[-1]), real=True)
        product = fft.rfft(entered[..., :numbers], size) * fft.rfft(self.up[:numbers], size)
        visits: Array = fft.irfft(product, size)[..., :numbers] / self.radius ** np.arange(float(numbers))
        return visits


def _growth(step: Array, move: Array, most: float) -> float:
    """Logarithm of a radius at which |1 - f| is clearly below 1: where it falls at half its first slope."""
    growth, slope = most, float(step @ move)
    while np.log(step @ np.exp(growth * move)) > 0.5 * slope * growth:
        growth /= 2.0
    return growth
