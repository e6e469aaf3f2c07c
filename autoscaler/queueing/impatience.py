"""Clients who give up: M/M/c with patience (Erlang A, and deadlines).

Model: Poisson arrivals, exponential service, c servers, first come first served. Each client waits no longer
than his patience, then leaves unserved. Such a queue is stable at any load: what is too much leaves.

Let V be the wait that a client of endless patience would have. While all servers are busy its density at v is

    f(v) = lambda exp(lambda H(v) - c v / E[S]) / Z,     H(v) = integral of P(patience > u) over u < v

since only those who would still be there are ahead of him, and Z makes the whole a probability, together with
the chance that a server is free, (1 / B(c - 1, a)) / Z. Everything else is an integral over f. Those are
taken by Gauss's rule around the maximum of f, in logarithms, so that neither size nor overload overflows.

Sources: Baccelli and Hebuterne, "On queues with impatient customers", Performance (1981); Palm's Erlang A as
in Garnett, Mandelbaum and Reiman, "Designing a call center with impatient customers", Manufacturing & Service
Operations Management 4 (2002); Zeltyn and Mandelbaum, "Call centers with impatient customers: many-server
asymptotics of the M/M/n+G queue", Queueing Systems 51 (2005).
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autoscaler.queueing.elementwise import Array, require
from autoscaler.queueing.erlang import log_erlang_b

NEGLIGIBLE = 40.0
"""The density is integrated to exp(-40) of its maximum."""

PANELS = 24
"""Panels of Gauss's rule on each smooth stretch of the density, of 16 points each."""


class Patience(Protocol):
    """How long clients wait before they leave."""

    @property
    def mean(self) -> float:
        """Mean patience > 0 [s]."""

    @property
    def steps(self) -> tuple[float, ...]:
        """Where the survival function jumps [s]."""

    def survival(self, v: Array) -> Array:
        """P(patience > v)."""

    def leaves(self, v: Array) -> Array:
        """P(patience <= v), to all digits where it is small."""

    def survival_integral(self, v: Array) -> Array:
        """H(v), the mean of the patience cut off at v [s]."""

    def falls_to(self, fraction: float) -> float:
        """The least v [s] with P(patience > v) <= fraction, for fraction in (0, 1]."""


@dataclass(frozen=True, slots=True)
class ExponentialPatience:
    """Clients lose patience at a constant rate: Erlang A."""

    mean: float
    """Mean patience > 0 [s]."""

    @property
    def steps(self) -> tuple[float, ...]:
        return ()

    def survival(self, v: Array) -> Array:
        return np.asarray(np.exp(-v / self.mean))

    def leaves(self, v: Array) -> Array:
        return np.asarray(-np.expm1(-v / self.mean))

    def survival_integral(self, v: Array) -> Array:
        return np.asarray(-self.mean * np.expm1(-v / self.mean))

    def falls_to(self, fraction: float) -> float:
        return -self.mean * math.log(fraction)


@dataclass(frozen=True, slots=True)
class FixedPatience:
    """Everybody leaves after the same time: a deadline for the start of service."""

    mean: float
    """The patience > 0 [s]."""

    @property
    def steps(self) -> tuple[float, ...]:
        return (self.mean,)

    def survival(self, v: Array) -> Array:
        return np.where(v < self.mean, 1.0, 0.0)

    def leaves(self, v: Array) -> Array:
        return np.where(v < self.mean, 0.0, 1.0)

    def survival_integral(self, v: Array) -> Array:
        return np.minimum(v, self.mean)

    def falls_to(self, fraction: float) -> float:
        return 0.0 if fraction >= 1.0 else self.mean


@dataclass(frozen=True, slots=True)
class ImpatientQueue:
    """The queue with clients who leave, at rest.

    Attributes
    ----------
    probability_of_wait : float
        A client finds all servers busy [1].
    fraction_lost : float
        Of all clients, leave unserved [1].
    wait_mean : float
        Over all clients, lost ones too [s].
    wait_mean_served : float
        Over those who are served, waiting or not [s].
    utilization : float
        Busy servers / servers [1].
    """

    probability_of_wait: float
    fraction_lost: float
    wait_mean: float
    wait_mean_served: float
    utilization: float


def impatient_queue(
    servers: float, arrival_rate: float, service_time_mean: float, patience: Patience
) -> ImpatientQueue:
    """Return what becomes of the clients of c servers when they leave after their patience.

    Parameters
    ----------
    servers : float
        c >= 1 [1].
    arrival_rate : float
        > 0 [1/s]; it may exceed what the servers can do.
    service_time_mean : float
        E[S] > 0 [s].
    patience : Patience
        `ExponentialPatience` or `FixedPatience`.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> queue = impatient_queue(10, 1.0, 10.0, ExponentialPatience(mean=10.0))
    >>> round(queue.fraction_lost, 4)
    0.1251
    """
    v, mass = _offered_wait(servers, arrival_rate, service_time_mean, patience)
    stays = patience.survival(v)
    lost, waits = float(mass @ patience.leaves(v)), float(mass.sum())
    # A client who leaves has waited for his patience: E[min(V, patience)] = E[H(V)].
    return ImpatientQueue(
        probability_of_wait=waits,
        fraction_lost=lost,
        wait_mean=float(mass @ patience.survival_integral(v)),
        wait_mean_served=float(mass @ (stays * v)) / (1.0 - lost),
        utilization=arrival_rate * service_time_mean * (1.0 - lost) / servers,
    )


def served_wait_tail(
    servers: float, arrival_rate: float, service_time_mean: float, patience: Patience, wait_seconds: float
) -> float:
    """Return the fraction of the served clients that waited longer than `wait_seconds` >= 0 [s].

    The other arguments are those of `impatient_queue`.
    """
    require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
    v, mass = _offered_wait(servers, arrival_rate, service_time_mean, patience)
    late, late_mass = _offered_wait(servers, arrival_rate, service_time_mean, patience, wait_seconds)
    return float(late_mass @ patience.survival(late)) / (1.0 - float(mass @ patience.leaves(v)))


def _offered_wait(
    servers: float, arrival_rate: float, service_time_mean: float, patience: Patience, least: float = 0.0
) -> tuple[Array, Array]:
    """Points v > least [s] and the probability that V lies around each: a rule for integrals over f."""
    require(servers >= 1, "servers >= 1", servers)
    require(arrival_rate > 0, "arrival_rate > 0", arrival_rate)
    require(service_time_mean > 0, "service_time_mean > 0", service_time_mean)
    require(patience.mean > 0, "patience > 0", patience)
    load, capacity = arrival_rate * service_time_mean, servers / service_time_mean

    def exponent(v: Array) -> Array:
        return np.asarray(arrival_rate * patience.survival_integral(v) - capacity * v)

    # The exponent is concave: it rises while more clients join than are served.
    peak = patience.falls_to(min(1.0, capacity / arrival_rate))
    top = float(exponent(np.asarray(peak)))
    v, weights = _gauss(exponent, peak, 0.0, patience.steps)
    log_idle = -float(log_erlang_b(servers - 1.0, load))
    log_busy = math.log(arrival_rate) + top + math.log(float(weights @ np.exp(exponent(v) - top)))
    log_z = float(np.logaddexp(log_idle, log_busy))
    if least > 0:
        v, weights = _gauss(exponent, max(peak, least), least, patience.steps)
    return v, weights * np.exp(math.log(arrival_rate) + exponent(v) - log_z)


def _gauss(
    exponent: Callable[[Array], Array], peak: float, least: float, steps: tuple[float, ...]
) -> tuple[Array, Array]:
    """Points and weights of Gauss's rule from `least` to where exp(exponent) is nothing, peak in between."""
    edges = {
        _where_negligible(exponent, peak, -1.0, least),
        peak,
        _where_negligible(exponent, peak, 1.0, least),
    }
    edges |= {step for step in steps if min(edges) < step < max(edges)}
    # Panels widen away from the peak, or from the jump that a stretch begins with.
    grade = (np.arange(PANELS + 1) / PANELS) ** 3
    stretches = [
        a + (b - a) * grade if a >= peak else b - (b - a) * grade[::-1]
        for a, b in itertools.pairwise(sorted(edges))
    ]
    panels = np.unique(np.concatenate(stretches))
    points, weights = np.polynomial.legendre.leggauss(16)
    middle, half = (panels[1:] + panels[:-1]) / 2, np.diff(panels) / 2
    return (middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel()


def _where_negligible(
    exponent: Callable[[Array], Array], peak: float, direction: float, least: float
) -> float:
    """Where a concave exponent has fallen by `NEGLIGIBLE` below its peak, but not below `least` [s]."""

    def fallen(distance: float) -> bool:
        there = max(peak + direction * distance, least)
        return (there == least and direction < 0) or bool(exponent(np.asarray(there)) < floor)

    floor = float(exponent(np.asarray(peak))) - NEGLIGIBLE
    distance = 1e-9 * max(peak, 1e-9)
    while not fallen(distance):
        distance *= 2.0
    return max(peak + direction * distance, least)
