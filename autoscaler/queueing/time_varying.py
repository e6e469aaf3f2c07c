"""Loads that change while services last: modified offered load, and square-root staffing.

Requests that arrived a while ago are still in service, so the load lags behind the arrival rate and is
smoother. With servers without end, M(t)/G/infinity, the number in service at t is Poisson with mean

    m(t) = integral over x > 0 of lambda(t - x) P(S > x) dx

the modified offered load: what m(t) erlangs ask for at rest is what to have at time t. It differs from
lambda(t) E[S] when the rate changes much within a service time; for short services both are equal.

Square-root staffing then takes c = m + beta sqrt(m), with beta from the limit of Halfin and Whitt for large
pools, P(W > 0) = 1 / (1 + beta Phi(beta) / phi(beta)). It holds P(W > 0) near its target at all times of the
day; against the iterative staffing of Feldman et al. it is within a server or two (see the tests).

Sources: Eick, Massey and Whitt, "The physics of the M_t/G/infinity queue", Operations Research 41 (1993);
Jennings, Mandelbaum, Massey and Whitt, "Server staffing to meet time-varying demand", Management Science 42
(1996); Halfin and Whitt, Operations Research 29 (1981); Feldman, Mandelbaum, Massey and Whitt, Management
Science 54 (2008).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special
from scipy.optimize import elementwise

from autoscaler.queueing.elementwise import Array, Number, require, result

BETA_MAX = 37.0
"""There P(W > 0) is about 1e-300."""


class ServiceLaw(Protocol):
    """A service-time distribution, as far as the modified offered load needs it."""

    @property
    def mean(self) -> float:
        """E[S] > 0 [s]."""

    def mean_within(self, x: Array) -> Array:
        """E[min(S, x)], the integral of P(S > u) over u < x [s]."""


@dataclass(frozen=True, slots=True)
class ExponentialService:
    """Exponential service of the given mean [s]."""

    mean: float

    def mean_within(self, x: Array) -> Array:
        return np.asarray(-self.mean * np.expm1(-x / self.mean))


@dataclass(frozen=True, slots=True)
class LognormalService:
    """Lognormal service of the given mean [s] and squared coefficient of variation > 0 [1]."""

    mean: float
    scv: float

    def mean_within(self, x: Array) -> Array:
        sigma = np.sqrt(np.log1p(self.scv))
        with np.errstate(divide="ignore"):
            z = (np.log(np.asarray(x) / self.mean) + sigma**2 / 2.0) / sigma
        return np.asarray(self.mean * special.ndtr(z - sigma) + x * special.ndtr(-z))


@dataclass(frozen=True)
class EmpiricalService:
    """Service as measured; one sample makes it constant.

    Attributes
    ----------
    samples : ndarray, shape (n_samples,)  [s]
    """

    samples: Array

    def __post_init__(self) -> None:
        require(
            len(self.samples) > 0 and np.all(self.samples >= 0), "samples >= 0, at least one", self.samples
        )

    @property
    def mean(self) -> float:
        return float(np.mean(self.samples))

    def mean_within(self, x: Array) -> Array:
        ordered = np.sort(self.samples)
        sums = np.concatenate([[0.0], np.cumsum(ordered)])
        shorter = np.searchsorted(ordered, x)
        return np.asarray((sums[shorter] + x * (len(ordered) - shorter)) / len(ordered))


def modified_offered_load(arrival_rates: Array, step: float, service: ServiceLaw) -> Array:
    """Return the modified offered load at the end of each step.

    Parameters
    ----------
    arrival_rates : ndarray, shape (n_steps,)  [1/s]
        Constant within a step. Before the first, its rate is taken to have lasted for ever.
    step : float
        Length of a step > 0 [s].
    service : ServiceLaw
        `ExponentialService`, `LognormalService` or `EmpiricalService`.

    Returns
    -------
    ndarray, shape (n_steps,)  [erlang]

    Notes
    -----
    Exact for such rates, for servers without end; Eick, Massey and Whitt (1993).

    Examples
    --------
    >>> rates = np.array([1.0, 1.0, 2.0, 2.0, 2.0])
    >>> modified_offered_load(rates, step=10.0, service=ExponentialService(10.0)).round(2).tolist()
    [10.0, 10.0, 16.32, 18.65, 19.5]
    """
    from scipy import signal  # noqa: PLC0415 - it takes half a second to load, and little else needs it

    rates = np.asarray(arrival_rates, dtype=float)
    require(
        rates.ndim == 1 and len(rates) > 0 and np.all(rates >= 0), "arrival_rates >= 0, one row", rates.shape
    )
    require(step > 0, "step > 0", step)
    # What arrived k steps ago is still there for so long of a service.
    within = service.mean_within(step * np.arange(len(rates) + 1.0))
    recent = signal.fftconvolve(rates, np.diff(within))[: len(rates)]
    load: Array = np.maximum(recent + rates[0] * (service.mean - within[1:]), 0.0)
    return load


def halfin_whitt_delay(beta: Number | float) -> Number:
    """Return P(W > 0) of M/M/c in the limit of large c = a + beta sqrt(a); 1 for beta <= 0.

    Examples
    --------
    >>> round(halfin_whitt_delay(1.0), 4)
    0.2234
    """
    b = np.maximum(np.asarray(beta, dtype=float), 0.0)
    density = np.exp(-b * b / 2.0) / np.sqrt(2.0 * np.pi)
    delay: Number = result(density / (density + b * special.ndtr(b)))
    return delay


def halfin_whitt_beta(probability_of_wait: Number | float) -> Number:
    """Return the spare servers, in units of sqrt(a), at which P(W > 0) has this value, in (0, 1).

    Examples
    --------
    >>> round(halfin_whitt_beta(0.2234), 3)
    1.0
    """
    p = np.asarray(probability_of_wait, dtype=float)
    require((p > 1e-300) & (p < 1), "1e-300 < probability_of_wait < 1", probability_of_wait)
    found = elementwise.find_root(
        lambda b, p: np.log(halfin_whitt_delay(b)) - np.log(p),
        (np.zeros_like(p), np.full_like(p, BETA_MAX)),
        args=(p,),
    )
    beta: Number = result(found.x)
    return beta


def square_root_servers(offered_load: Array | float, probability_of_wait: float) -> Array:
    """Return the servers for P(W > 0) <= probability_of_wait by square-root staffing.

    Parameters
    ----------
    offered_load : ndarray or float
        m >= 0 [erlang], at rest or modified.
    probability_of_wait : float
        In (0, 1) [1].

    Returns
    -------
    ndarray of int
        ceil(m + beta sqrt(m)). Within two of the exact number at rest for loads of 1 to 10,000 erlangs and
        probabilities of 0.01 to 0.5; within one in 10,000 beyond.

    Examples
    --------
    >>> square_root_servers(np.array([10.0, 100.0]), probability_of_wait=0.1).tolist()
    [15, 115]
    """
    load = np.asarray(offered_load, dtype=float)
    require(load >= 0, "offered_load >= 0", offered_load)
    servers: Array = np.ceil(load + halfin_whitt_beta(probability_of_wait) * np.sqrt(load))
    return servers.astype(np.int64)
