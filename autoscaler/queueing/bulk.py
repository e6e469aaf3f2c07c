"""Service in batches: c servers that each take up to b requests at a time, M/G^[b]/c.

Model: Poisson arrivals; a batch of n takes s(n) = alpha + beta n, of which the constant part is what batching
saves; a freed server takes what waits, up to b, and a request that finds a server idle starts alone, at once.
So batches are small when idle and grow with the load, up to a capacity of c b / s(b) requests a second.

One server (exact). The queue left when a batch starts is a Markov chain: n waiting become n - min(n, b) plus
what arrives during the service. Its stationary law gives the mean wait by Little's law, and the tail by
counting who is ahead: a request with p others before it waits for the running batch to end, and then for
floor(p / b) full ones.

Several servers (approximation). While all are busy, they are taken for one that is c times as fast; how often
that is, follows from the flow between all busy and not, with Erlang B for the latter. For unit batches and
exponential service this would be exact. Simulation: the mean wait is within 20 % for 2 to 16 servers where
more than 1 request in 50 waits, and utilization within 3 %.

With a waiting delay d, an idle server waits for its batch to fill until the oldest request has waited d. See
`batches_delayed`.

Sources: Bailey, "On queueing processes with bulk service", J. Royal Statistical Society B 16 (1954);
Neuts, "A general class of bulk queues with Poisson input", Annals of Mathematical Statistics 38 (1967), for one
server; the approximation for several is this project's.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import linalg, special

from autoscaler.queueing.elementwise import Array, require
from autoscaler.queueing.erlang import erlang_b, log_poisson

LOAD_MAX = 0.99
"""Share of the capacity up to which the chain is solved."""

NEGLIGIBLE = 1e-12
"""Probability left out at the ends of the chain and of Poisson counts."""


@dataclass(frozen=True, slots=True)
class BatchLine:
    """How long a batch takes: s(n) = alpha + beta n [s]."""

    alpha: float
    """Time of a batch that does not depend on its size, >= 0 [s]."""
    beta: float
    """Time that each request adds, >= 0 [s]."""

    def __post_init__(self) -> None:
        if min(self.alpha, self.beta) < 0 or self.alpha + self.beta <= 0:
            raise ValueError(f"need alpha, beta >= 0, not both 0, got {self.alpha}, {self.beta}")

    def service_time(self, size: Array | float) -> Array:
        """s(size) [s]."""
        return np.asarray(self.alpha + self.beta * np.asarray(size, dtype=float))


@dataclass(frozen=True, slots=True)
class BatchQueue:
    """The queue of a batching pool, at rest.

    Attributes
    ----------
    utilization : float
        Busy servers / servers [1].
    batch_mean : float
        Requests in a batch [1].
    probability_of_wait : float
        A request does not start at once [1].
    wait_mean : float
        Over all requests [s]; infinite at and above capacity.
    response_mean : float
        Wait and service [s].
    """

    utilization: float
    batch_mean: float
    probability_of_wait: float
    wait_mean: float
    response_mean: float
    _gaps: "_Gaps | None" = field(default=None, repr=False, compare=False)

    def wait_tail(self, wait_seconds: float) -> float:
        """P(W > wait_seconds), for `wait_seconds` >= 0 [s]; 1 at and above capacity."""
        require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
        if self._gaps is None:
            return 1.0
        return self.probability_of_wait * self._gaps.wait_tail(wait_seconds)

    def wait_quantile(self, quantile: float) -> float:
        """The least t [s], to one part in a million, with P(W > t) <= 1 - quantile, in [0, 1)."""
        require(0 <= quantile < 1, "0 <= quantile < 1", quantile)
        if self._gaps is None:
            return np.inf
        if self.probability_of_wait <= 1 - quantile:
            return 0.0
        low, high = 0.0, self._gaps.longest
        while self.wait_tail(high) > 1 - quantile:
            low, high = high, 2 * high
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.wait_tail(middle) > 1 - quantile else (low, middle)
        return high


def batch_capacity(servers: float, line: BatchLine, batch_max: int) -> float:
    """Return the rate [1/s] at which c servers finish requests when every batch is full.

    Examples
    --------
    >>> batch_capacity(servers=2, line=BatchLine(alpha=0.010, beta=0.001), batch_max=10)
    1000.0
    """
    require(batch_max >= 1, "batch_max >= 1", batch_max)
    return float(servers * batch_max / line.service_time(batch_max))


def batches_at_once(servers: int, arrival_rate: float, line: BatchLine, batch_max: int) -> BatchQueue:
    """Return the queue when a freed server takes at once what waits, up to `batch_max`.

    Parameters
    ----------
    servers : int
        c >= 1 [1].
    arrival_rate : float
        > 0 [1/s]; at and above capacity all waits are infinite.
    line : BatchLine
        Time of a batch by its size.
    batch_max : int
        b >= 1 [requests].

    Raises
    ------
    ValueError
        If an argument is outside its range, or the rate is between 99 % of the capacity and all of it, where
        the queue is too long to be computed.

    Examples
    --------
    >>> queue = batches_at_once(1, arrival_rate=50.0, line=BatchLine(0.010, 0.001), batch_max=16)
    >>> round(queue.batch_mean, 2), round(queue.utilization, 2)
    (1.26, 0.45)
    """
    require(servers >= 1, "servers >= 1", servers)
    require(arrival_rate > 0, "arrival_rate > 0", arrival_rate)
    capacity = batch_capacity(servers, line, batch_max)
    if arrival_rate >= capacity:
        full = float(line.service_time(batch_max))
        return BatchQueue(1.0, float(batch_max), 1.0, np.inf, np.inf if full else 0.0)
    require(arrival_rate <= LOAD_MAX * capacity, f"arrival_rate <= 99 % of {capacity:.6g}/s", arrival_rate)
    gaps = _Gaps.solve(arrival_rate, line, batch_max, servers)
    alone = float(line.service_time(1))
    others_busy = erlang_b(servers - 1, arrival_rate * alone)
    flow = arrival_rate * others_busy * gaps.busy_period
    all_busy = flow / (1.0 + flow)
    starts_alone, gap_rate = arrival_rate * (1.0 - all_busy), all_busy / gaps.gap_mean
    batch_rate = starts_alone + gap_rate * (1.0 - gaps.none_waiting)
    busy = starts_alone * alone + gap_rate * servers * gaps.started_gap_mean
    batch_mean = arrival_rate / batch_rate
    wait = all_busy * gaps.queue_mean / arrival_rate
    # The batch that a request is in, seen from the request: larger batches hold more requests.
    in_service = (starts_alone * alone + gap_rate * servers * gaps.started_work) / arrival_rate
    return BatchQueue(busy / servers, batch_mean, all_busy, wait, wait + in_service, gaps)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The chain of a server that is `servers` times as fast, while it is busy.

    A gap is the time from one start to the next; `waiting[n]` the probability that n waited at its start.
    """

    arrival_rate: float
    batch_max: int
    gap: Array
    waiting: Array

    @classmethod
    def solve(cls, arrival_rate: float, line: BatchLine, batch_max: int, servers: int) -> "_Gaps":
        gap = line.service_time(np.arange(batch_max + 1)) / servers
        # Nobody waiting: the busy period is over, and the next one starts with one request.
        gap[0] = gap[1]
        full = arrival_rate * gap[batch_max]
        # Far out the law falls as (1 + e)^-n with e near 2 (1 - load), at least as fast as that of full batches.
        states = int(batch_max + full + 60 + 2.0 * -np.log(NEGLIGIBLE) / (2.0 * (1.0 - full / batch_max)))
        return cls(arrival_rate, batch_max, gap, _stationary(arrival_rate * gap, batch_max, states))

    @property
    def longest(self) -> float:
        """Gap of a full batch [s]."""
        return float(self.gap[-1])

    @property
    def none_waiting(self) -> float:
        return float(self.waiting[0])

    @property
    def gap_mean(self) -> float:
        return float(self.waiting @ self.gap[self._size])

    @property
    def busy_period(self) -> float:
        """Mean time from the first request to the next moment at which nobody waits for a free server [s]."""
        return self.gap_mean / self.none_waiting

    @property
    def started_gap_mean(self) -> float:
        """Gap of the batches taken from the queue; none counts 0 [s]."""
        return float(self.waiting[1:] @ self.gap[self._size[1:]])

    @property
    def started_work(self) -> float:
        """Gap times size of the batches taken from the queue [s]."""
        return float(self.waiting[1:] @ (self.gap * np.arange(len(self.gap)))[self._size[1:]])

    @property
    def queue_mean(self) -> float:
        """Mean number waiting, over time [requests]: those left behind, and on average half of those to come."""
        gap = self.gap[self._size]
        return float(self.waiting @ (gap * (self._left + self.arrival_rate * gap / 2)) / self.gap_mean)

    @property
    def _size(self) -> Array:
        return np.minimum(np.arange(len(self.waiting)), self.batch_max)

    @property
    def _left(self) -> Array:
        return np.maximum(np.arange(len(self.waiting)) - self.batch_max, 0)

    def wait_tail(self, wait_seconds: float) -> float:
        """P(W > t) of a request that arrives while the server is busy."""
        late, full = 0.0, self.gap[-1]
        # Arrival at a middle of 64 parts of the gap; `rest` is what is left of it then.
        part = (np.arange(64) + 0.5) / 64
        short = min(self.batch_max, len(self.waiting))
        groups = [(np.arange(short), np.zeros(short)), (np.arange(short, len(self.waiting)), None)]
        for n, left in groups:
            behind = (n - self.batch_max if left is None else left)[:, None]
            gap = self.gap[np.minimum(n, self.batch_max)][:, None]
            rest = gap * (1 - part)
            # So many full batches must be ahead for the wait to exceed t.
            batches = np.where(rest > wait_seconds, 0, np.floor((wait_seconds - rest) / full) + 1)
            ahead = np.maximum(batches * self.batch_max - behind, 0)
            enough = np.where(
                ahead > 0, special.pdtrc(np.maximum(ahead - 1, 0), self.arrival_rate * gap * part), 1
            )
            late += float(self.waiting[n] @ (self.gap[np.minimum(n, self.batch_max)] * enough.mean(axis=1)))
        return late / self.gap_mean


def _stationary(arrivals: Array, batch_max: int, states: int) -> Array:
    """Law of the number waiting at the start of a gap: a banded system, with the state 0 set to 1.

    `arrivals[m]` is the mean number of arrivals during the gap of a batch of m.
    """
    most = int(arrivals.max() + 9 * np.sqrt(arrivals.max()) + 30)
    count = np.arange(most + 1)[:, None]
    probability = np.exp(
        log_poisson(np.broadcast_to(count * 1.0, (most + 1, len(arrivals))), arrivals + 0.0 * count)
    )
    n = np.arange(1, states)
    left, size = np.maximum(n - batch_max, 0), np.minimum(n, batch_max)
    above = batch_max
    bands = np.zeros((above + most + 1, states - 1))
    target = left + count
    inside = (target >= 1) & (target < states)
    row = above + target - n
    column = np.broadcast_to(n - 1, row.shape)
    bands[row[inside], column[inside]] = probability[:, size][inside]
    bands[above] -= 1.0
    from_none = np.zeros(states - 1)
    reached = min(most, states - 1)
    from_none[:reached] = -probability[1 : reached + 1, 0]
    law = np.concatenate([[1.0], linalg.solve_banded((most, above), bands, from_none)])
    return np.maximum(law, 0.0) / law.sum()
