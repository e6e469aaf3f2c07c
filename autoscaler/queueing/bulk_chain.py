"""The queue of a batching server while it is busy: a Markov chain from the start of one batch to the next.

Between two starts lies a gap: for one server the service of the batch, for c servers that are all busy the
time until the next of them ends. With n waiting at a start, min(n, b) enter; n - min(n, b) and what arrives
during the gap wait at the next start. Nobody waiting ends the busy period; the next starts with one request.

Gaps have gamma laws, put on a few Gauss points, so that arrivals in a gap are a mixture of Poisson counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from autoscaler.queueing.elementwise import Array
from autoscaler.queueing.wiener_hopf import Walk

GAP_POINTS = 8
"""Gauss points over the length of a gap."""

NEGLIGIBLE = 1e-12
"""Probability left out at the ends of the chain and of Poisson counts."""

SCV_CONSTANT = 1e-3
"""Gaps that vary less are taken for constant."""


@dataclass(frozen=True, slots=True)
class BusyChain:
    """The chain of a server that is `servers` times as fast, while it is busy.

    `gap[m, k]` is the k-th possible length of the gap of a batch of m [s], of probability `chance[m, k]`;
    `waiting[n]` the probability that n waited at its start.
    """

    arrival_rate: float
    batch_max: int
    gap: Array
    chance: Array
    waiting: Array

    @classmethod
    def solve(
        cls, arrival_rate: float, service_times: Array, servers: int, service_scv: float
    ) -> "BusyChain":
        """Solve for mean service times [s] by size, from 0 (a request that starts alone) to the limit."""
        mean = np.asarray(service_times, dtype=float) / servers
        batch_max = len(mean) - 1
        # Ends of c independent servers are spaced like c points thrown on a circle; what is late in one gap
        # is early in the next, so that over a row of full batches only the variation of the service counts.
        uneven = ((servers - 1) + 2.0 * service_scv) / (servers + 1)
        points, chance = _gamma_points(uneven)
        gap, chances = mean[:, None] * points, np.tile(chance, (batch_max + 1, 1))
        points, chances[-1] = _gamma_points(service_scv)
        gap[-1] = mean[-1] * points
        full = arrival_rate * mean[-1] / batch_max
        # Far out the law falls as exp(-n e), with e near 2 (1 - full) / (1 + the variation of full batches).
        fall = 2.0 * (1.0 - full) / (1.0 + batch_max * service_scv)
        states = 2 * batch_max + most_arrivals(arrival_rate * gap) - int(np.log(NEGLIGIBLE) / fall)
        return cls(arrival_rate, batch_max, gap, chances, _stationary(arrival_rate * gap, chances, states))

    @property
    def longest(self) -> float:
        """Mean gap of a full batch [s]."""
        return float(self.gap[-1] @ self.chance[-1])

    @property
    def none_waiting(self) -> float:
        return float(self.waiting[0])

    @property
    def gap_mean(self) -> float:
        return float(self.waiting @ self._mean)

    @property
    def busy_period(self) -> float:
        """Mean time from the first request to the moment when a freed server finds nobody [s]."""
        return self.gap_mean / self.none_waiting

    @property
    def started_gap_mean(self) -> float:
        """Gap of the batches taken from the queue; none counts 0 [s]."""
        return float(self.waiting[1:] @ self._mean[1:])

    @property
    def started_work(self) -> float:
        """Gap times size of the batches taken from the queue [s]."""
        return float(self.waiting[1:] @ (self._mean * self._size)[1:])

    @property
    def queue_mean(self) -> float:
        """Mean number waiting, over time [requests]: the ones left, and half of those to come."""
        square = (self.gap**2 * self.chance).sum(axis=1)[self._size]
        left = np.maximum(np.arange(len(self.waiting)) - self.batch_max, 0)
        return float(self.waiting @ (self._mean * left + self.arrival_rate * square / 2) / self.gap_mean)

    @property
    def _size(self) -> Array:
        return np.minimum(np.arange(len(self.waiting)), self.batch_max)

    @property
    def _mean(self) -> Array:
        mean: Array = (self.gap * self.chance).sum(axis=1)[self._size]
        return mean


def _gamma_points(scv: float) -> tuple[Array, Array]:
    """Gauss points and weights of a gamma law of mean 1."""
    if scv < SCV_CONSTANT:
        return np.ones(GAP_POINTS), np.eye(1, GAP_POINTS)[0]
    points, weights = special.roots_genlaguerre(GAP_POINTS, 1.0 / scv - 1.0)
    return np.asarray(points * scv), np.asarray(weights / weights.sum())


def poisson_counts(means: Array, most: int) -> Array:
    """Return P(N = j) for j = 0 to `most` (last axis) and each mean > 0 [1]."""
    count = np.arange(most + 1.0)
    law: Array = np.exp(np.log(means)[..., None] * count - means[..., None] - special.gammaln(count + 1.0))
    return law


def most_arrivals(means: Array) -> int:
    """Return a number of arrivals that no Poisson count with one of these means exceeds [1]."""
    return int(means.max() + 9.0 * np.sqrt(means.max()) + 30.0)


def _stationary(arrivals: Array, chance: Array, states: int) -> Array:
    """Law of the number waiting at the start of a gap, from the balance of ways to and from each number.

    `arrivals[m, k]` is the mean number of arrivals during the k-th gap of a batch of m. From b on all batches
    are full, and the number waiting is a random walk. What it visits after each number below b is known
    first; that leaves a system of b equations.
    """
    limit = len(arrivals) - 1
    most = max(most_arrivals(arrivals), 2 * limit)
    # moves[n, m]: chance that m follow n < b. full[j]: chance that j come during the gap of a full batch.
    moves = _mixed(arrivals[:limit], chance[:limit], most)
    full = _mixed(arrivals[limit:], chance[limit:], most_arrivals(arrivals[limit]) + limit)[0]
    walk = Walk.of(full, limit, furthest=most)
    entered = walk.entered(moves[:, limit:])
    # Numbers from b to 2b - 1 also lead back below b.
    n = np.arange(limit)
    back = np.tril(full[np.maximum(n[:, None] - n, 0)])
    below = (moves[:, :limit] + walk.visits(entered, limit) @ back.T).T - np.eye(limit)
    low = np.append(1.0, np.linalg.solve(below[1:, 1:], -below[1:, 0]))
    law = np.maximum(np.append(low, walk.visits(low @ entered, states - limit)), 0.0)
    stationary: Array = law / law.sum()
    return stationary


def _mixed(arrivals: Array, chance: Array, most: int) -> Array:
    """P(j arrivals in a gap), j = 0 to `most`, for each size."""
    law = np.zeros((len(arrivals), most + 1))
    for means, weights in zip(arrivals.T, chance.T, strict=True):
        reach = min(most_arrivals(means), most)
        law[:, : reach + 1] += weights[:, None] * poisson_counts(means, reach)
    return law
