"""The queue of a batching server while it is busy: a Markov chain from the start of one batch to the next.

Between two starts lies a gap: for one server the service of the batch, for c servers that are all busy the
time until the next of them ends. With n waiting at a start, min(n, b) enter; n - min(n, b) and what arrives
during the gap wait at the next start. Nobody waiting ends the busy period; the next starts with one request.

Gaps have gamma laws, put on a few Gauss points, so that arrivals in a gap are a mixture of Poisson counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from autoscaler.queueing.elementwise import Array
from autoscaler.queueing.erlang import log_poisson

GAP_POINTS = 8
"""Gauss points over the length of a gap."""

ARRIVAL_POINTS = 24
"""Points over a gap at which a request may arrive."""

NEGLIGIBLE = 1e-12
"""Probability left out at the ends of the chain and of Poisson counts."""

UNLIKELY = 1e-8
"""States that are rarer are left out of tails."""

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
        states = int(2 * batch_max + 60 - np.log(NEGLIGIBLE) / fall)
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

    def wait_tail(self, wait_seconds: float) -> float:
        """P(W > t) of a request that arrives while the server is busy."""
        n = np.arange(len(self.waiting))
        left = np.maximum(n - self.batch_max, 0)
        # Whoever leaves somebody behind started a full batch; only for those does `left` matter.
        likely = self.waiting > UNLIKELY
        few = self.waiting[: self.batch_max]
        late = sum(few[m] * self._late_in_gap(m, np.zeros(1), wait_seconds)[0] for m in range(len(few)))
        many = (n >= self.batch_max) & likely
        late += self.waiting[many] @ self._late_in_gap(self.batch_max, left[many], wait_seconds)
        return float(late) / self.gap_mean

    def _late_in_gap(self, size: int, left: Array, wait_seconds: float) -> Array:
        """Mean time [s] of a gap of a batch of `size` during which who arrives will wait longer than t."""
        part = (np.arange(ARRIVAL_POINTS) + 0.5) / ARRIVAL_POINTS
        gap = self.gap[size][:, None]
        rest = gap * (1.0 - part)
        # So many full batches must be ahead for the wait to exceed t.
        batches = np.where(rest > wait_seconds, 0.0, np.floor((wait_seconds - rest) / self.longest) + 1.0)
        ahead = batches * self.batch_max - left[:, None, None]
        enough = np.where(
            ahead > 0, special.pdtrc(np.maximum(ahead - 1, 0), self.arrival_rate * gap * part), 1.0
        )
        late: Array = enough.mean(axis=2) @ (self.gap[size] * self.chance[size])
        return late

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


def _stationary(arrivals: Array, chance: Array, states: int) -> Array:
    """Law of the number waiting at the start of a gap: a banded system, with the state 0 set to 1.

    `arrivals[m, k]` is the mean number of arrivals during the k-th gap of a batch of m.
    """
    batch_max = len(arrivals) - 1
    most = int(arrivals.max() + 9 * np.sqrt(arrivals.max()) + 30)
    count = np.arange(most + 1.0)
    # probability[j, m] that j arrive during the gap of a batch of m
    shape = (most + 1, *arrivals.shape)
    poisson = np.exp(
        log_poisson(np.broadcast_to(count[:, None, None], shape), np.broadcast_to(arrivals, shape))
    )
    probability = (poisson * chance).sum(axis=2)
    n = np.arange(1, states)
    target = np.maximum(n - batch_max, 0) + count[:, None].astype(int)
    inside = (target >= 1) & (target < states)
    bands = np.zeros((batch_max + most + 1, states - 1))
    row, column = batch_max + target - n, np.broadcast_to(n - 1, target.shape)
    bands[row[inside], column[inside]] = probability[:, np.minimum(n, batch_max)][inside]
    bands[batch_max] -= 1.0
    from_none = np.zeros(states - 1)
    reached = min(most, states - 1)
    from_none[:reached] = -probability[1 : reached + 1, 0]
    law = np.concatenate([[1.0], linalg.solve_banded((most, batch_max), bands, from_none)])
    stationary: Array = np.maximum(law, 0.0) / law.sum()
    return stationary
