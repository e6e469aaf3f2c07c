"""The fewest servers that are enough, found in few evaluations, for many pools at once."""

import math
from collections.abc import Callable

import numpy as np

from autoscaler.queueing.elementwise import Array

SEARCH_STEPS_MAX = 200
"""Bound on the evaluations of one search; about five are made."""


def fewest(excess: Callable[[Array], Array], too_few: Array, guess: Array) -> Array:
    """Return the least whole c > too_few with excess(c) <= 0, for each element.

    Doubling steps find a number that is enough; then secants, and every third time halving, close in. That is
    O(log c) evaluations at worst.

    Parameters
    ----------
    excess : callable
        How far c servers, an array, are from being enough; falls with c. It is never asked at `too_few`.
    too_few : ndarray
        Whole numbers that are known not to be enough.
    guess : ndarray
        Near the answer, if possible.

    Returns
    -------
    ndarray of int, shape of the arguments
    """
    low, high = np.asarray(too_few, dtype=float), np.maximum(np.ceil(guess), too_few + 1.0)
    at_high = excess(high)
    at_low = np.maximum(at_high, 0.0) + 1.0
    for _ in range(SEARCH_STEPS_MAX):
        short = at_high > 0
        if not np.any(short):
            break
        further = np.where(short, high + 2.0 * (high - low), high)
        low, at_low = np.where(short, high, low), np.where(short, at_high, at_low)
        high, at_high = further, excess(further)
    for step in range(SEARCH_STEPS_MAX):
        if np.all(high - low <= 1.0):
            break
        share = at_low / (at_low - at_high) if step % 3 < 2 else 0.5
        c = np.clip(np.ceil(low + (high - low) * share), low + 1.0, np.maximum(high - 1.0, low + 1.0))
        at_c = excess(c)
        enough = at_c <= 0
        low, at_low = np.where(enough, low, c), np.where(enough, at_low, at_c)
        high, at_high = np.where(enough, c, high), np.where(enough, at_c, at_high)
    return high.astype(np.int64)


def square_root_guess(load: Array, log_allowed: Array, patience: Array) -> Array:
    """Guess c = a + beta sqrt(a) such that log P(W > t) is about `log_allowed`.

    `patience` is the exponent of the conditional wait at t for each spare server, so that
    -log P(W > t) is nearly beta² / 2 + (sqrt(pi / 2) + patience sqrt(a)) beta. Halfin and Whitt (1981).
    """
    root = np.sqrt(load)
    slope = math.sqrt(math.pi / 2.0) + np.minimum(patience * root, 1e100)
    wanted = -2.0 * log_allowed
    guess: Array = load + root * wanted / (slope + np.sqrt(slope * slope + wanted))
    return guess
