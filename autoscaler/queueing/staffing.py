"""Fewest servers for an objective: a wait, a mean wait, a utilization; for one load or a mixture of loads.

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
from autoscaler.queueing.elementwise import Array, require
from autoscaler.queueing.search import fewest, square_root_guess

ROUNDING = 1e-9
"""Relative slack when a real number of servers is made whole, so that 10 / (1 - 0.9) asks for 100."""


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
    servers = servers_for_wait_each(
        np.asarray(arrival_rate, dtype=float),
        np.asarray(service_time_mean, dtype=float),
        wait_seconds,
        wait_quantile,
        arrival_scv=arrival_scv,
        service_scv=service_scv,
    )
    return int(servers)


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
    tail, load = ggc.WaitTail.of(rate, service, ca2, cs2), rate * service
    require(t >= 0, "wait_seconds >= 0", wait_seconds)
    log_allowed = np.log1p(-q)
    servers = fewest(
        lambda c: tail.log(c, t) - log_allowed,
        too_few=np.floor(load),
        guess=square_root_guess(load, log_allowed, t * tail.decay),
    )
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

    def excess(c: Array) -> Array:
        mean = np.asarray(
            ggc.wait_mean(
                c, arrival_rate, service_time_mean, arrival_scv=arrival_scv, service_scv=service_scv
            )
        )
        mean = np.minimum(mean, 1e300)  # infinite in overload
        missing: Array = (mean - wait_mean) / (mean + wait_mean)
        return missing

    load = np.asarray(arrival_rate * service_time_mean)
    return int(fewest(excess, np.floor(load), load + np.sqrt(load)))


def servers_for_utilization(offered_load: float, utilization_high: float) -> int:
    """Return the fewest servers c with offered_load / c <= utilization_high.

    Parameters
    ----------
    offered_load : float
        a >= 0 [erlang].
    utilization_high : float
        Ceiling, in (0, 1] [1].

    Examples
    --------
    >>> servers_for_utilization(10.0, 0.75)
    14
    """
    require(0 < utilization_high <= 1, "0 < utilization_high <= 1", utilization_high)
    require(offered_load >= 0, "offered_load >= 0", offered_load)
    return math.ceil(offered_load / utilization_high * (1.0 - ROUNDING))


def band_servers(offered_load: float, utilization_low: float, utilization_high: float) -> tuple[int, int]:
    """Return the fewest and the most servers with utilization_low <= a / c <= utilization_high.

    Where no whole number of servers lies in the band, as happens for small loads, the first is greater than
    the second; the first still keeps the upper edge.

    Parameters
    ----------
    offered_load : float
        a >= 0 [erlang].
    utilization_low, utilization_high : float
        0 < low < high <= 1 [1].

    Examples
    --------
    >>> band_servers(10.0, 0.60, 0.75)
    (14, 16)
    >>> band_servers(0.5, 0.60, 0.75)
    (1, 0)
    """
    require(
        0 < utilization_low < utilization_high,
        "0 < utilization_low < utilization_high",
        utilization_low,
        utilization_high,
    )
    most = math.floor(offered_load / utilization_low * (1.0 + ROUNDING))
    return servers_for_utilization(offered_load, utilization_high), most


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
    load = _overload_with_more_than(allowed, rates * service_time_mean, w)
    tail = ggc.WaitTail.of(rates, service_time_mean, arrival_scv, service_scv)
    require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
    log_allowed = np.log1p(-np.asarray(wait_quantile))

    def excess(c: Array) -> Array:
        late: Array = np.log(w @ np.exp(tail.log(c, wait_seconds))) - log_allowed
        return late

    guess = square_root_guess(load, log_allowed, wait_seconds * tail.decay)
    return int(fewest(excess, np.floor(load), guess))


def _overload_with_more_than(allowed: float, loads: Array, weights: Array) -> Array:
    """Return the load below which even a wait of nobody else would break the objective [erlang]."""
    order = np.argsort(loads)[::-1]
    first = int(np.searchsorted(np.cumsum(weights[order]), allowed, side="right"))
    return np.asarray(loads[order[min(first, len(loads) - 1)]])
