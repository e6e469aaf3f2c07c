"""Fewest servers for an objective of the wait: a quantile or a mean; for one load or a mixture of loads.

Every wait falls with the number of servers, so the fewest that keep an objective are found by search, from
the square-root rule of Halfin and Whitt as the first guess.

A load that exceeds the servers means a certain wait, never an error: a mixture of loads, such as a forecast,
then weighs what might overload the fleet by its probability.

Sources: Halfin and Whitt, "Heavy-traffic limits for queues with many exponential servers", Operations
Research 29 (1981); the waits are those of `autoscaler.queueing.ggc`.
"""

import math

import numpy as np

from autoscaler.queueing import ggc
from autoscaler.queueing.elementwise import Array, log, require
from autoscaler.queueing.search import fewest, fewest_each, square_root_guess


def servers_for_wait(
    arrival_rate: float,
    service_time_mean: float,
    wait_seconds: float,
    wait_quantile: float,
    *,
    arrival_scv: float = 1.0,
    service_scv: float = 1.0,
) -> int:
    """Return the fewest servers c with P(W > wait_seconds) <= 1 - wait_quantile.

    Parameters
    ----------
    arrival_rate : float
        >= 0 [1/s]; without arrivals no server is needed.
    service_time_mean : float
        E[S] > 0 [s].
    wait_seconds : float
        The wait that is still good, >= 0 [s].
    wait_quantile : float
        Fraction of requests that must not wait longer, in (0, 1) [1].
    arrival_scv, service_scv : float
        Squared coefficients of variation, >= 0 [1]; 1 and 1 is M/M/c.

    Raises
    ------
    ValueError
        If an argument is outside the range stated.

    Notes
    -----
    The wait is that of `ggc.wait_tail`, with its range of validity.

    Examples
    --------
    >>> servers_for_wait(arrival_rate=1.0, service_time_mean=10.0, wait_seconds=5.0, wait_quantile=0.99)
    15
    """
    require(0 < wait_quantile < 1, "0 < wait_quantile < 1", wait_quantile)
    require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
    tail = ggc.WaitTail.of(arrival_rate, service_time_mean, arrival_scv, service_scv)
    if tail.load == 0:
        return 0
    t, log_allowed = float(wait_seconds), math.log1p(-wait_quantile)

    def excess(c: float) -> tuple[float, float]:
        here, fewer = tail.log_and_with_one_fewer(c, t)
        return here - log_allowed, fewer - log_allowed

    guess = square_root_guess(tail.load, log_allowed, t * tail.decay)
    return fewest(excess, math.floor(tail.load), guess)


def servers_for_wait_each(
    arrival_rates: Array,
    service_time_means: Array | float,
    wait_seconds: Array | float,
    wait_quantile: Array | float,
    *,
    arrival_scv: Array | float = 1.0,
    service_scv: Array | float = 1.0,
) -> Array:
    """Return `servers_for_wait` of many pools at once.

    Parameters
    ----------
    arrival_rates : ndarray, shape (n_pools,)  [1/s]
        The other arguments are numbers, or arrays of this shape.

    Returns
    -------
    ndarray of int, shape (n_pools,)

    Examples
    --------
    >>> servers_for_wait_each(np.array([0.0, 1.0, 100.0]), 10.0, 5.0, 0.99).tolist()
    [0, 15, 1009]
    """
    rate, service, t, q, ca2, cs2 = np.broadcast_arrays(
        *(
            np.asarray(value, dtype=float)
            for value in (
                arrival_rates,
                service_time_means,
                wait_seconds,
                wait_quantile,
                arrival_scv,
                service_scv,
            )
        )
    )
    require((q > 0) & (q < 1), "0 < wait_quantile < 1", wait_quantile)
    require(t >= 0, "wait_seconds >= 0", wait_seconds)
    tail, log_allowed = ggc.WaitTail.of(rate, service, ca2, cs2), np.log1p(-q)

    def excess(c: Array) -> tuple[Array, Array]:
        here, fewer = tail.log_and_with_one_fewer(c, t)
        return here - log_allowed, fewer - log_allowed

    guess = square_root_guess(tail.load, log_allowed, t * tail.decay)
    servers = fewest_each(excess, np.floor(tail.load), guess)
    return np.where(rate > 0, servers, 0)


def servers_for_mean_wait(
    arrival_rate: float,
    service_time_mean: float,
    wait_mean: float,
    *,
    arrival_scv: float = 1.0,
    service_scv: float = 1.0,
) -> int:
    """Return the fewest servers with E[W] <= wait_mean, over all requests, waiting or not.

    `wait_mean` > 0 [s]; the other arguments are those of `servers_for_wait`.

    Examples
    --------
    >>> servers_for_mean_wait(arrival_rate=1.0, service_time_mean=10.0, wait_mean=1.0)
    13
    """
    require(wait_mean > 0, "wait_mean > 0", wait_mean)
    if arrival_rate == 0:
        return 0

    def excess(c: float) -> float:
        mean = ggc.wait_mean(
            c, arrival_rate, service_time_mean, arrival_scv=arrival_scv, service_scv=service_scv
        )
        mean = min(mean, 1e300)  # infinite in overload
        return (mean - wait_mean) / (mean + wait_mean)

    load = arrival_rate * service_time_mean
    return fewest(lambda c: (excess(c), excess(c - 1.0)), math.floor(load), load + math.sqrt(load))


def servers_for_wait_mixture(
    arrival_rates: Array,
    weights: Array,
    service_time_mean: float,
    wait_seconds: float,
    wait_quantile: float,
    *,
    arrival_scv: float = 1.0,
    service_scv: float = 1.0,
) -> int:
    """Return the fewest servers c with E[P(W > wait_seconds)] <= 1 - wait_quantile over a mixture of rates.

    What is not known of the rate is paid for here, once, with the randomness of arrivals and service: a rate
    that overloads c servers counts as a certain wait.

    Parameters
    ----------
    arrival_rates : ndarray, shape (n_nodes,)  [1/s]
        Rates that may come: quadrature nodes of a forecast, or samples.
    weights : ndarray, shape (n_nodes,)  [1]
        Their probabilities, >= 0, with sum 1.
    service_time_mean, wait_seconds, wait_quantile, arrival_scv, service_scv : float
        As in `servers_for_wait`.

    Raises
    ------
    ValueError
        If shapes differ, weights are not probabilities, or an argument is outside its range.

    Examples
    --------
    >>> servers_for_wait_mixture(np.array([0.5, 1.0, 2.0]), np.array([0.3, 0.6, 0.1]), 10.0, 5.0, 0.99)
    23
    """
    rates, w = np.asarray(arrival_rates, dtype=float), np.asarray(weights, dtype=float)
    require(
        rates.ndim == 1 and rates.shape == w.shape and len(rates) > 0,
        "as many weights as arrival_rates",
        w.shape,
    )
    require(np.all(w >= 0) and abs(w.sum() - 1.0) <= 1e-6, "weights >= 0 with sum 1, not", w.sum())
    require(0 < wait_quantile < 1, "0 < wait_quantile < 1", wait_quantile)
    arriving = (rates > 0) & (w > 0)
    rates, w, allowed = rates[arriving], w[arriving], 1.0 - wait_quantile
    if w.sum() <= allowed:
        return 0
    require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
    tail = ggc.WaitTail.of(rates, service_time_mean, arrival_scv, service_scv)
    t, log_allowed = float(wait_seconds), math.log1p(-wait_quantile)

    def excess(c: float) -> tuple[float, float]:
        here, fewer = (float(w @ np.exp(late)) for late in tail.log_and_with_one_fewer(c, t))
        return log(here) - log_allowed, log(fewer) - log_allowed

    load = _overload_with_more_than(allowed, tail.load, w)
    return fewest(excess, math.floor(load), square_root_guess(load, log_allowed, t * tail.decay))


def _overload_with_more_than(allowed: float, loads: Array, weights: Array) -> float:
    """Return the load below which even a wait of nobody else would break the objective [erlang]."""
    order = np.argsort(loads)[::-1]
    first = int(np.searchsorted(np.cumsum(weights[order]), allowed, side="right"))
    return float(loads[order[min(first, len(loads) - 1)]])
