"""The fewest servers that are enough, found in few evaluations, for one pool or for many at once.

What is asked of a number of servers is how far it, and how far one fewer, are from being enough. Where one is
enough and the other is not, the search ends; else the two lead on by a secant, and every third time the range
that is left is halved. O(log c) evaluations at worst; from a good guess one or two.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autoscaler.queueing.elementwise import Array

SEARCH_STEPS_MAX = 200
"""Bound on the evaluations of one search."""

STRETCH = 2.0
"""While no number is known to be enough, a step may go so many times as far beyond as the search has come."""


def fewest(excess: Callable[[float], tuple[float, float]], too_few: float, guess: float) -> int:
    """Return the least whole c > too_few that is enough.

    Parameters
    ----------
    excess : callable
        How far c and c - 1 servers are from being enough: above 0 if they are not. Falls with c.
    too_few : float
        A whole number that is known not to be enough.
    guess : float
        Near the answer, if possible.
    """
    low, high = too_few, math.inf
    c = max(float(math.ceil(guess)), low + 1.0)
    for step in range(SEARCH_STEPS_MAX):
        here, fewer = excess(c)
        if here > 0:
            low = c
        elif fewer <= 0:
            high = c - 1.0
        else:
            break
        if high - low <= 1.0:
            c = high
            break
        ahead = here / (fewer - here) if fewer > here > -math.inf else math.nan
        aim = c + math.ceil(ahead) if math.isfinite(ahead) else math.inf
        if high < math.inf and (step % 3 == 2 or aim == math.inf):
            aim = float(math.ceil((low + high) / 2.0))
        most = high - 1.0 if high < math.inf else c + STRETCH * (c - too_few)
        c = min(max(aim, low + 1.0), most)
    return int(c)


def fewest_each(excess: Callable[[Array], tuple[Array, Array]], too_few: Array, guess: Array) -> Array:
    """Return `fewest` of many pools at once.

    Arguments are those of `fewest`, as arrays of one shape; so is the answer, of int.
    """
    low, high = np.asarray(too_few, dtype=float), np.full_like(too_few, np.inf)
    c = np.maximum(np.ceil(guess), low + 1.0)
    for step in range(SEARCH_STEPS_MAX):
        here, fewer = excess(c)
        short, enough = here > 0, fewer <= 0
        low = np.where(short, c, np.where(enough, low, c - 1.0))
        high = np.where(enough, c - 1.0, np.where(short, high, c))
        if np.all(high - low <= 1.0):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = here / (fewer - here)
        aim = np.where(np.isfinite(ahead), c + np.ceil(ahead), np.inf)
        bounded = high < np.inf
        halve = bounded & ((aim == np.inf) | (step % 3 == 2))
        aim = np.where(halve, np.ceil((low + np.where(bounded, high, low)) / 2.0), aim)
        most = np.where(bounded, high - 1.0, c + STRETCH * (c - too_few))
        c = np.where(high - low <= 1.0, high, np.minimum(np.maximum(aim, low + 1.0), most))
    return high.astype(np.int64)


def square_root_guess(load: Any, log_allowed: Any, patience: Any) -> Any:
    """Guess c = a + beta sqrt(a) such that log P(W > t) is about `log_allowed`.

    `patience` is the exponent of the conditional wait at t for each spare server, so that
    -log P(W > t) is nearly beta² / 2 + (sqrt(pi / 2) + patience sqrt(a)) beta. Halfin and Whitt (1981).
    """
    root = load**0.5
    slope = math.sqrt(math.pi / 2.0) + patience * root
    wanted = -2.0 * log_allowed
    return load + root * wanted / (slope + (slope * slope + wanted) ** 0.5)
