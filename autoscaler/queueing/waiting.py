"""How long one waits in M/M/c: probability, mean, tail and quantile.

Model: Poisson arrivals, exponential service, c servers, first come first served. Who waits at all, waits
exponentially long: each of the c busy servers ends at rate 1 / E[S], and the queue in front has a
geometric length, so that

    P(W > t) = C(c, a) exp(-(c - a) t / E[S]),        a = arrival_rate E[S] < c

Outside the stable region, a >= c, the queue grows without bound: the probability and the tail are 1, mean and
quantiles infinite. Source: Cooper, *Introduction to Queueing Theory* (1981), ch. 3.
"""

import math
from typing import Any

from autoscaler.queueing.elementwise import Number, exp, larger, log, ratio, require, result, value
from autoscaler.queueing.erlang import erlang_c


def probability_of_wait(
    servers: Number | float, arrival_rate: Number | float, service_time_mean: Number | float
) -> Number:
    """Return P(W > 0), that an arrival finds all servers busy.

    Parameters
    ----------
    servers : float or ndarray
        c >= 0 [1].
    arrival_rate : float or ndarray
        >= 0 [1/s].
    service_time_mean : float or ndarray
        E[S] > 0 [s].

    Returns
    -------
    float or ndarray
        In [0, 1]; 1 outside the stable region.

    Raises
    ------
    ValueError
        If an argument is negative, or `service_time_mean` is 0.

    Examples
    --------
    >>> round(probability_of_wait(servers=12, arrival_rate=1.0, service_time_mean=10.0), 3)
    0.449
    """
    probability: Number = result(_delay(servers, arrival_rate, service_time_mean)[0])
    return probability


def wait_mean(
    servers: Number | float, arrival_rate: Number | float, service_time_mean: Number | float
) -> Number:
    """Return E[W] [s], over all requests; infinite outside the stable region. Arguments as above.

    Examples
    --------
    >>> round(wait_mean(servers=12, arrival_rate=1.0, service_time_mean=10.0), 3)
    2.247
    """
    probability, rate = _delay(servers, arrival_rate, service_time_mean)
    mean: Number = result(ratio(probability, rate))
    return mean


def wait_tail(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    wait_seconds: Number | float,
) -> Number:
    """Return P(W > wait_seconds), for `wait_seconds` >= 0 [s]; 1 outside the stable region.

    The other arguments are those of `probability_of_wait`.

    Examples
    --------
    >>> round(wait_tail(servers=12, arrival_rate=1.0, service_time_mean=10.0, wait_seconds=5.0), 3)
    0.165
    """
    t = value(wait_seconds)
    require(t >= 0, "wait_seconds >= 0", wait_seconds)
    probability, rate = _delay(servers, arrival_rate, service_time_mean)
    tail: Number = result(probability * exp(-rate * t))
    return tail


def wait_quantile(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    quantile: Number | float,
) -> Number:
    """Return the least t >= 0 [s] with P(W > t) <= 1 - quantile; infinite outside the stable region.

    `quantile` lies in [0, 1); the other arguments are those of `probability_of_wait`.

    Examples
    --------
    >>> round(wait_quantile(servers=12, arrival_rate=1.0, service_time_mean=10.0, quantile=0.99), 2)
    19.03
    """
    q = value(quantile)
    require((q >= 0) & (q < 1), "0 <= quantile < 1", quantile)
    probability, rate = _delay(servers, arrival_rate, service_time_mean)
    # Outside the stable region, where the rate is 0, even the quantile 0 is infinite.
    wait: Number = result(ratio(larger(log(probability / (1.0 - q)), 0.0), rate))
    return wait


def _delay(
    servers: Number | float, arrival_rate: Number | float, service_time_mean: Number | float
) -> tuple[Any, Any]:
    """P(W > 0), and the rate (c - a) / E[S] [1/s] at which the conditional tail falls; 0 if unstable."""
    c, rate, service = value(servers), value(arrival_rate), value(service_time_mean)
    require((rate >= 0) & (rate < math.inf), "finite arrival_rate >= 0", arrival_rate)
    require((service > 0) & (service < math.inf), "finite service_time_mean > 0", service_time_mean)
    load = rate * service
    return erlang_c(c, load), larger(c - load, 0.0) / service
