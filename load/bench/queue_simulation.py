"""A queue with c servers, customer by customer: the judge of the formulas in `autoscaler.queueing`.

The recursion of Kiefer and Wolfowitz, first come first served: each customer takes the server that is free
first, and waits until then. Many independent copies of the queue advance together, one customer a step, so
that a step is a few numpy operations. Each copy starts empty; the first customers are not counted.
"""

import bisect
import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Law = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""Draws an array of times of the given shape [s]."""


def gamma_law(mean: float, scv: float) -> Law:
    """Gamma with the given mean [s] and squared coefficient of variation; 1 is exponential, 0 constant."""
    if scv == 0:
        return lambda rng, shape: np.full(shape, mean)
    if scv == 1:
        return lambda rng, shape: rng.exponential(mean, shape)
    return lambda rng, shape: rng.gamma(1.0 / scv, mean * scv, shape)


def lognormal_law(mean: float, scv: float) -> Law:
    """Lognormal with the given mean [s] and squared coefficient of variation."""
    variance = np.log1p(scv)
    return lambda rng, shape: rng.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), shape)


def hyperexponential_law(mean: float, scv: float) -> Law:
    """Short and long times, each exponential, with balanced means, for SCVs above 1; below, gamma."""
    if scv <= 1:
        return gamma_law(mean, scv)
    often = 0.5 * (1.0 + np.sqrt((scv - 1.0) / (scv + 1.0)))

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        means = np.where(rng.random(shape) < often, mean / (2.0 * often), mean / (2.0 * (1.0 - often)))
        return rng.exponential(1.0, shape) * means

    return draw


def simulate_waits(
    servers: int,
    between_arrivals: Law,
    service: Law,
    *,
    customers: int,
    warm_up: int,
    copies: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the waits [s] of `customers` in each copy, after `warm_up` that are not counted.

    Returns
    -------
    ndarray, shape (customers, copies)
    """
    free_at = np.zeros((copies, servers))
    rows = np.arange(copies)
    arrival = np.zeros(copies)
    waits = np.empty((customers, copies))
    block = 256
    for start in range(-warm_up, customers, block):
        steps = min(block, customers - start)
        gaps = between_arrivals(rng, (steps, copies))
        times = service(rng, (steps, copies))
        for step in range(steps):
            arrival += gaps[step]
            first = free_at.argmin(axis=1)
            begin = np.maximum(free_at[rows, first], arrival)
            free_at[rows, first] = begin + times[step]
            if start + step >= 0:
                np.subtract(begin, arrival, out=waits[start + step])
    return waits


def simulate_batches(
    servers: int,
    arrivals: Floats,
    service_time: Callable[[int], float],
    batch_max: int,
    waiting_delay: float = 0.0,
) -> tuple[Floats, Floats, float]:
    """Serve requests in batches: a free server takes what waits, at once or when the oldest has waited long.

    Parameters
    ----------
    arrivals : ndarray, shape (n,)  [s]
        Times, ascending.
    service_time : callable
        From the size of a batch to its time [s].
    waiting_delay : float
        A batch that is not full starts when its oldest request has waited so long [s].

    Returns
    -------
    waits : ndarray, shape (n,)  [s]
    batches : ndarray, shape (n_batches,)  [requests]
    busy : float
        Busy time of all servers together [s].
    """
    free_at = [0.0] * servers
    waits, batches, busy, done, n = np.empty(len(arrivals)), [], 0.0, 0, len(arrivals)
    times = arrivals.tolist()
    while done < n:
        free = heapq.heappop(free_at)
        filled = times[min(done + batch_max, n) - 1] if done + batch_max <= n else np.inf
        start = max(free, times[done], min(filled, times[done] + waiting_delay))
        last = min(bisect.bisect_right(times, start), done + batch_max)
        waits[done:last] = start - arrivals[done:last]
        batches.append(last - done)
        took = service_time(last - done)
        busy += took
        heapq.heappush(free_at, start + took)
        done = last
    return waits, np.array(batches, dtype=float), busy
