"""Peakedness: how much burstier than Poisson a stream of requests is, as the servers feel it.

Send the stream to servers without end. The number in service N then has mean a, the offered load, and
z = Var[N] / E[N] is the peakedness: 1 for Poisson arrivals, above 1 for bursts, below 1 for regular arrivals.
It depends on the service time too: a burst shorter than a service counts in full, a swell that lasts for many
services is not a burst but a change of the rate. z is all that the formulas of `ggc` need to know of the
arrivals, and it also describes streams whose times between arrivals are not independent.

    renewal arrivals            z = 1 + (ca2 - 1) integral of P(S > t)² dt / E[S]        (heavy traffic)
    rates that swell and ebb    z = 1 + (variance / mean of the rate) x (time that burst and service share)

Sources: Eckberg, "Generalized peakedness of teletraffic processes", 10th International Teletraffic Congress
(1983); Whitt, "Approximations for the GI/G/m queue", Production and Operations Management 2 (1993).
"""

import math
from typing import Any

import numpy as np

from autoscaler.queueing.elementwise import Array, Number, larger, require, result, smaller, value

SCV_MAX = 10.0
"""Beyond, two moments say too little of a distribution to approximate a wait."""

ROUNDING = 1e-9
"""By so much an SCV that was computed may exceed its range."""

PEAKEDNESS_MIN = 0.01
"""Clockwork, ca2 = cs2 = 0, would have z = 0; with this floor its waits come out as 0 all the same."""


def peakedness(arrival_scv: Number | float, service_scv: Number | float) -> Number:
    """Return the peakedness of renewal arrivals.

    Parameters
    ----------
    arrival_scv, service_scv : float or ndarray
        Variance / mean² of the times between arrivals and of the service time, in [0, 10] [1].

    Returns
    -------
    float or ndarray
        z > 0 [1].

    Raises
    ------
    ValueError
        If an SCV is outside [0, 10].

    Notes
    -----
    The integral is the mean of the shorter of two services over the mean of one: 1/2 for exponential
    service, 1 for constant. By two moments it is taken as 1 / (1 + cs2) for cs2 <= 1, after Whitt (1993), and
    as 1 / (1 + cs) above, which simulation favours over Whitt's.

    Examples
    --------
    >>> peakedness(arrival_scv=4.0, service_scv=1.0)
    2.5
    """
    ca2 = value(arrival_scv)
    require((ca2 >= 0) & (ca2 <= SCV_MAX), "0 <= arrival_scv <= 10", arrival_scv)
    z: Number = result(larger(1.0 + (ca2 - 1.0) * _overlap(service_scv), PEAKEDNESS_MIN))
    return z


def arrival_scv_for_peakedness(z: Number | float, service_scv: Number | float) -> Number:
    """Return the arrival SCV of the renewal stream with peakedness `z`: what `ggc` takes for any stream.

    The inverse of `peakedness`. For streams that are not renewal, heavy traffic sees their slow fluctuations
    more than z tells; up to utilizations of about 0.9 z is the better guide.

    Parameters
    ----------
    z : float or ndarray
        Peakedness > 0 [1].
    service_scv : float or ndarray
        In [0, 10] [1].

    Raises
    ------
    ValueError
        If no SCV in [0, 10] has this peakedness.

    Examples
    --------
    >>> arrival_scv_for_peakedness(2.5, service_scv=1.0)
    4.0
    """
    ca2 = 1.0 + (np.asarray(z, dtype=float) - 1.0) / _overlap(service_scv)
    within = (ca2 >= -ROUNDING) & (ca2 <= SCV_MAX + ROUNDING)
    require(within, "a peakedness that an SCV in [0, 10] can have", z)
    scv: Number = result(np.clip(ca2, 0.0, SCV_MAX))
    return scv


def peakedness_of_modulated(
    rate_mean: float, rate_deviation: float, burst_time: float, service_time_mean: float
) -> float:
    """Return the peakedness of Poisson arrivals whose rate itself swells and ebbs.

    Parameters
    ----------
    rate_mean, rate_deviation : float
        Mean > 0 and standard deviation >= 0 of the rate [1/s].
    burst_time : float
        After so long [s] the rate has forgotten itself: its autocorrelation is exp(-t / burst_time).
    service_time_mean : float
        E[S] > 0 [s].

    Notes
    -----
    Exact for exponential service. A rate that alternates between two values at rates r01 and r10 has
    burst_time = 1 / (r01 + r10).

    Examples
    --------
    >>> peakedness_of_modulated(rate_mean=1.0, rate_deviation=1.0, burst_time=10.0, service_time_mean=10.0)
    6.0
    """
    require(rate_mean > 0, "rate_mean > 0", rate_mean)
    require(min(burst_time, service_time_mean) > 0, "times > 0", burst_time, service_time_mean)
    shared = burst_time * service_time_mean / (burst_time + service_time_mean)
    return 1.0 + rate_deviation**2 / rate_mean * shared


def peakedness_of_counts(counts: Array, interval: float, service_time_mean: float) -> float:
    """Estimate the peakedness from the number of arrivals in consecutive intervals.

    The counts are sent to exponential servers without end, one interval at a time, and z is read off the mean
    and variance of the number in service. What lasts longer than the whole record cannot be seen, and a trend
    or season within it counts as a burst: take records of some dozens of service times, without a trend.

    Parameters
    ----------
    counts : ndarray, shape (n_intervals,)  [requests per interval]
    interval : float
        Length of an interval [s]; the estimate needs it to be shorter than `service_time_mean`.
    service_time_mean : float
        E[S] [s].

    Returns
    -------
    float
        z >= 0 [1]; 1 if nothing arrived.

    Raises
    ------
    ValueError
        If `interval` exceeds `service_time_mean`, or the record is shorter than 10 services.
    """
    n = np.asarray(counts, dtype=float)
    require(
        0 < interval <= service_time_mean, "0 < interval <= service_time_mean", interval, service_time_mean
    )
    require(
        len(n) * interval >= 10 * service_time_mean, "counts over >= 10 service_time_mean", len(n) * interval
    )
    if not n.any():
        return 1.0
    from scipy import signal  # noqa: PLC0415 - it takes half a second to load, and little else needs it

    # Expected number in service at the end of each interval, given the counts: a filter that forgets.
    kept = math.exp(-interval / service_time_mean)
    entering = (1.0 - kept) * service_time_mean / interval
    steady = entering / (1.0 - kept) * n.mean()
    in_service, _ = signal.lfilter([entering], [1.0, -kept], n, zi=[kept * steady])
    # Given the arrivals, each of them is there or not: Var[N] = Var[E[N | arrivals]] + sum of p (1 - p).
    presence_square_sum = entering**2 / (1.0 - kept**2)
    mean = in_service.mean()
    return float((in_service.var() - n.mean() * presence_square_sum) / mean + 1.0)


def _overlap(service_scv: Number | float) -> Any:
    """E[min(S, S')] / E[S], by the SCV of S alone."""
    cs2 = value(service_scv)
    require((cs2 >= 0) & (cs2 <= SCV_MAX), "0 <= service_scv <= 10", service_scv)
    # cs2 up to 1, and its root above
    return 1.0 / (1.0 + smaller(cs2, cs2**0.5))
