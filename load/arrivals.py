"""Arrival laws: when requests come. Pure; randomness comes in as `rng`, times are seconds from the start.

Every law returns all arrival times of a run at once, sorted: an open-loop generator must know when it
intended to send, whatever the server does. A rate that varies is realised by thinning a Poisson process at
its greatest rate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Rate = Callable[[np.ndarray], np.ndarray]
"""Arrival rate λ(t) [1/s] at the times given [s]."""


def constant(rate: float, duration: float) -> np.ndarray:
    """Return arrivals `1 / rate` apart, the first at 0; shape (n,) [s]."""
    _check(rate, duration)
    return np.arange(np.ceil(rate * duration)) / rate if rate > 0 else np.empty(0)


def poisson(rate: float, duration: float, rng: np.random.Generator) -> np.ndarray:
    """Return arrivals of a Poisson process on [0, duration), shape (n,) [s].

    Given their number, which is Poisson with mean `rate * duration`, the times are independent and uniform.
    """
    _check(rate, duration)
    return np.sort(rng.uniform(0.0, duration, rng.poisson(rate * duration)))


def varying(rate: Rate, rate_max: float, duration: float, rng: np.random.Generator) -> np.ndarray:
    """Return arrivals of a Poisson process with rate λ(t) on [0, duration), by thinning; shape (n,) [s].

    Candidates come at `rate_max`; one at t stays with probability λ(t) / rate_max. Lewis and Shedler,
    Naval Research Logistics 26 (1979).

    Raises
    ------
    ValueError
        If λ(t) is negative or exceeds `rate_max` at a candidate: the result would not follow λ.
    """
    candidates = poisson(rate_max, duration, rng)
    wanted = np.asarray(rate(candidates), dtype=float)
    if np.any(wanted < 0) or np.any(wanted > rate_max * (1 + 1e-9)):
        raise ValueError(f"need 0 <= rate(t) <= rate_max = {rate_max}, got {wanted.min()} to {wanted.max()}")
    return candidates[rng.uniform(0.0, rate_max, candidates.size) < wanted]


@dataclass(frozen=True)
class DayShape:
    """Demand over a day: quiet at night, a morning rise, a lunch dip, an evening peak.

    Three bumps over a floor, each periodic with the day, so that midnight has no seam. At the hour h of the
    day 0.15 + 0.60 b(h − 10.5) + 0.35 b(h − 15.5) + 0.70 b(h − 19.5), b(x) = exp(6 cos(2π x / 24) − 6),
    divided by its greatest value. That makes the peak 1 at 19:24, the mean 0.489, the morning 0.87 at
    10:30, lunch 0.47 at 13:25, and the night 0.17 at 3:00.

    Attributes
    ----------
    rate_peak : float
        Arrival rate at the evening peak [1/s].
    day : float
        Length of a day [s]; 86 400 is real time, less is a day in fast motion.
    starts_at : float
        Time of day at t = 0, as a fraction of the day [1].
    """

    rate_peak: float
    day: float
    starts_at: float = 0.0

    def rate(self, time: np.ndarray) -> np.ndarray:
        """Return λ(t) [1/s] at the times given [s]."""
        return self.rate_peak * day_shape(np.asarray(time) / self.day + self.starts_at)

    @property
    def rate_mean(self) -> float:
        """Mean of λ over a day [1/s]."""
        return float(np.mean(self.rate(np.arange(1440) * self.day / 1440)))


def day_shape(time_of_day: np.ndarray) -> np.ndarray:
    """Return demand relative to the day's peak, at fractions of the day; periodic with 1."""

    def bump(hour: float) -> np.ndarray:
        return np.exp(6.0 * (np.cos(2 * np.pi * (time_of_day - hour / 24)) - 1))

    return (0.15 + 0.60 * bump(10.5) + 0.35 * bump(15.5) + 0.70 * bump(19.5)) / _DAY_SHAPE_MAX


_DAY_SHAPE_MAX = 0.868540  # of the sum above, at 19:24


def of_counts(
    starts: np.ndarray, interval: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return arrivals with exactly these counts per interval, independent and uniform within each.

    Parameters
    ----------
    starts, interval : ndarray, shape (n,)
        Start and length of each interval [s].
    counts : ndarray of int, shape (n,)
        Requests in each.

    Returns
    -------
    ndarray, shape (counts.sum(),)  [s]
    """
    return np.sort(np.repeat(starts, counts) + np.repeat(interval, counts) * rng.random(int(counts.sum())))


def faster(arrivals: np.ndarray, speed: float) -> np.ndarray:
    """Return the same arrivals, `speed` times as fast: the rate is multiplied, the shape stays."""
    if speed <= 0:
        raise ValueError(f"need speed > 0, got {speed}")
    return arrivals / speed


def _check(rate: float, duration: float) -> None:
    if rate < 0 or duration < 0:
        raise ValueError(f"need rate, duration >= 0, got {rate}, {duration}")
