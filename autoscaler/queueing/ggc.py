"""How long one waits in G/G/c: arrivals and service of any variability, by two moments of each.

Model: c servers, first come first served, independent times between arrivals with squared coefficient of
variation ca2, independent service times with cs2, both from 0 to 10. M/M/c (1 and 1) is exact; so is the mean
wait of M/G/1. Two parts:

- Who waits at all. Bursts and regularity change the fluctuation of the number in service by a factor z, the
  peakedness: its variance / mean if there were servers without end. Hayward's rule scales load and servers
  by z and then takes arrivals for Poisson: P(W > 0) = C(c / z, a / z), with Erlang's formula for a real
  number of servers. For z see `peakedness`.
- How long. The wait of those who wait is taken as exponential with the rate of heavy traffic,
  2 (c - a) / (E[S] (ca2 + cs2)).

How far it is from simulation, and how far the better known formulas of Allen and Cunneen, Kimura, and Whitt
(1993) are, stands in docs/queueing.md, for SCVs of 0.02 to 10, 1 to 80 servers and utilizations of 0.5 to
0.9. Two moments do not fix a distribution: with SCVs far above 1 the third moment matters, and where P(W > 0)
is below 0.01 none of them is good.

Outside the stable region, a >= c, the probability and the tail are 1, mean and quantiles infinite. For SCVs
above 10 the functions raise ValueError.

Sources: Fredericks, "Congestion in blocking systems: a simple approximation technique", Bell System Technical
Journal 59 (1980), for Hayward's rule; Allen, *Probability, Statistics and Queueing Theory* (2nd ed. 1990),
section 5.3, for the rate; Whitt, "Approximations for the GI/G/m queue", Production and Operations Management
2 (1993), for the peakedness.
"""

import math
from dataclasses import dataclass
from typing import Any

from autoscaler.queueing.elementwise import (
    Number,
    everywhere,
    exp,
    larger,
    log,
    ratio,
    require,
    result,
    value,
)
from autoscaler.queueing.erlang import log_erlang_c, log_erlang_c_and_with_one_fewer
from autoscaler.queueing.peakedness import peakedness

CLOCKWORK = 1e-120
"""Least ca2 + cs2 that is told from 0."""


def probability_of_wait(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    *,
    arrival_scv: Number | float = 1.0,
    service_scv: Number | float = 1.0,
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
    arrival_scv, service_scv : float or ndarray
        Variance / mean² of the times between arrivals and of the service time, in [0, 10] [1].

    Returns
    -------
    float or ndarray
        In [0, 1]; 1 outside the stable region.

    Raises
    ------
    ValueError
        If an argument is negative, `service_time_mean` is 0, or an SCV is above 10.

    Examples
    --------
    >>> round(probability_of_wait(servers=12, arrival_rate=1.0, service_time_mean=10.0), 3)
    0.449
    """
    probability: Number = result(
        _delay(servers, arrival_rate, service_time_mean, arrival_scv, service_scv)[0]
    )
    return probability


def wait_mean(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    *,
    arrival_scv: Number | float = 1.0,
    service_scv: Number | float = 1.0,
) -> Number:
    """Return E[W] [s], over all requests; infinite outside the stable region. Arguments as above."""
    probability, rate = _delay(servers, arrival_rate, service_time_mean, arrival_scv, service_scv)
    mean: Number = result(ratio(probability, rate))
    return mean


def wait_tail(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    wait_seconds: Number | float,
    *,
    arrival_scv: Number | float = 1.0,
    service_scv: Number | float = 1.0,
) -> Number:
    """Return P(W > wait_seconds), for `wait_seconds` >= 0 [s]; 1 outside the stable region."""
    t = value(wait_seconds)
    require(t >= 0, "wait_seconds >= 0", wait_seconds)
    probability, rate = _delay(servers, arrival_rate, service_time_mean, arrival_scv, service_scv)
    tail: Number = result(probability * exp(-rate * t))
    return tail


def wait_quantile(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    quantile: Number | float,
    *,
    arrival_scv: Number | float = 1.0,
    service_scv: Number | float = 1.0,
) -> Number:
    """Return the least t >= 0 [s] with P(W > t) <= 1 - quantile; infinite outside the stable region."""
    q = value(quantile)
    require((q >= 0) & (q < 1), "0 <= quantile < 1", quantile)
    probability, rate = _delay(servers, arrival_rate, service_time_mean, arrival_scv, service_scv)
    # Outside the stable region, where the rate is 0, even the quantile 0 is infinite.
    wait: Number = result(ratio(larger(log(probability / (1.0 - q)), 0.0), rate))
    return wait


@dataclass(frozen=True, slots=True)
class WaitTail:
    """The tail of the wait as a function of the servers alone: what a search asks many times.

    All are floats, or arrays that broadcast.

    Attributes
    ----------
    load : float or ndarray
        a = arrival_rate * service_time_mean [erlang].
    peakedness : float or ndarray
        z of the arrivals [1].
    decay : float or ndarray
        Each server above the load adds so much to the rate of the conditional wait [1/s].
    """

    load: Any
    peakedness: Any
    decay: Any

    @classmethod
    def of(
        cls,
        arrival_rate: Number | float,
        service_time_mean: Number | float,
        arrival_scv: Number | float,
        service_scv: Number | float,
    ) -> "WaitTail":
        """Check the arguments of the functions above, and keep what they say."""
        rate, service = value(arrival_rate), value(service_time_mean)
        ca2, cs2 = value(arrival_scv), value(service_scv)
        require((rate >= 0) & (rate < math.inf), "finite arrival_rate >= 0", arrival_rate)
        require((service > 0) & (service < math.inf), "finite service_time_mean > 0", service_time_mean)
        z = peakedness(ca2, cs2)
        # Clockwork does not wait for any time: a rate beyond all others that still multiplies 0.
        return cls(rate * service, z, 2.0 / (service * larger(ca2 + cs2, CLOCKWORK)))

    def log_and_with_one_fewer(self, servers: Any, wait_seconds: Any) -> tuple[Any, Any]:
        """log P(W > wait_seconds) with so many servers >= 1, and with one fewer; 0 if unstable."""
        if everywhere(self.peakedness == 1.0):
            here, fewer = log_erlang_c_and_with_one_fewer(servers, self.load)
        else:
            here, fewer = self.log_probability(servers), self.log_probability(servers - 1.0)
        return here - wait_seconds * self.rate(servers), fewer - wait_seconds * self.rate(servers - 1.0)

    def log_probability(self, servers: Any) -> Any:
        """log P(W > 0)."""
        return log_erlang_c(servers / self.peakedness, self.load / self.peakedness)

    def rate(self, servers: Any) -> Any:
        """Rate at which the conditional tail falls [1/s]; 0 outside the stable region."""
        return larger(servers - self.load, 0.0) * self.decay


def _delay(
    servers: Number | float,
    arrival_rate: Number | float,
    service_time_mean: Number | float,
    arrival_scv: Number | float,
    service_scv: Number | float,
) -> tuple[Any, Any]:
    """P(W > 0), and the rate [1/s] at which the conditional tail falls; 0 if unstable."""
    c = value(servers)
    require((c >= 0) & (c < math.inf), "finite servers >= 0", servers)
    tail = WaitTail.of(arrival_rate, service_time_mean, arrival_scv, service_scv)
    return exp(tail.log_probability(c)), tail.rate(c)
