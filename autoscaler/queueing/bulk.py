"""Service in batches: c servers that each take up to b requests at a time, M/G^[b]/c.

Model: Poisson arrivals; a batch of n takes s(n) = alpha + beta n on average, of which the constant part is
what batching saves. Batches are small when idle and grow with the load, up to a capacity of c b / s(b)
requests a second. A freed server takes at once what waits, up to b, and a request that finds a server idle
starts alone; or, with a waiting delay, an idle server lets its batch fill for a while.

One server is exact, for constant or gamma batch times: see `bulk_chain`. A request with p others before it
waits for the running batch to end, and then for floor(p / b) full ones.

Several servers are approximated. While all are busy they are taken for one that is c times as fast, with the
uneven gaps of c independent servers; how often that is follows from the flow between all busy and not, with
Erlang B for the latter. In simulations with 2 to 16 servers, limits up to 16 and batch times of SCV 0.1 to
1 the mean wait was within 30 % in nearly all cases (see docs/queueing.md). If batch times hardly vary,
servers fall into step, several end at once, and all but the first find little to take: waits grow
severalfold. So for several servers SCVs below 0.05 are refused.

Sources: Bailey, "On queueing processes with bulk service", Journal of the Royal Statistical Society B 16
(1954), for one server; the approximation for several servers is this project's own.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.bulk_chain import BusyChain
from autoscaler.queueing.bulk_wait import WaitLaw, wait_of_late
from autoscaler.queueing.elementwise import require
from autoscaler.queueing.erlang import erlang_b

LOAD_MAX = 0.99
"""Share of the capacity up to which the chain is solved."""

SERVICE_SCV_MIN = 0.05
"""Batch times that vary less let several servers fall into step."""


@dataclass(frozen=True)
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
    _gaps: BusyChain | None = field(default=None, repr=False, compare=False)

    def wait_tail(self, wait_seconds: float) -> float:
        """P(W > wait_seconds), for `wait_seconds` >= 0 [s]; 1 at and above capacity."""
        require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
        late = self._late
        return self.probability_of_wait * late.tail(wait_seconds) if late else 1.0

    def wait_quantile(self, quantile: float) -> float:
        """The least t [s] with P(W > t) <= 1 - quantile, for quantile in [0, 1)."""
        require(0 <= quantile < 1, "0 <= quantile < 1", quantile)
        late, allowed = self._late, 1.0 - quantile
        if late is None:
            return np.inf
        if self.probability_of_wait <= allowed:
            return 0.0
        return late.quantile(allowed / self.probability_of_wait)

    @cached_property
    def _late(self) -> WaitLaw | None:
        """Made when it is asked for: the means do without."""
        return wait_of_late(self._gaps) if self._gaps else None


def batch_capacity(servers: float, line: BatchLine, batch_max: int) -> float:
    """Return the rate [1/s] at which c servers finish requests when every batch is full.

    Examples
    --------
    >>> batch_capacity(servers=2, line=BatchLine(alpha=0.010, beta=0.001), batch_max=10)
    1000.0
    """
    require(batch_max >= 1, "batch_max >= 1", batch_max)
    return float(servers * batch_max / line.service_time(batch_max))


def batches_at_once(
    servers: int, arrival_rate: float, line: BatchLine, batch_max: int, service_scv: float = 0.1
) -> BatchQueue:
    """Return the queue when a freed server takes at once what waits, up to `batch_max`.

    Parameters
    ----------
    servers : int
        c >= 1 [1].
    arrival_rate : float
        > 0 [1/s]; at and above capacity all waits are infinite.
    line : BatchLine
        Mean time of a batch by its size.
    batch_max : int
        b >= 1 [requests].
    service_scv : float
        Variance / mean² of the time of a batch of one size, in [0, 1], for several servers in [0.05, 1] [1].

    Raises
    ------
    ValueError
        If an argument is outside its range, or the rate is between 99 % of the capacity and all of it, where
        the queue is too long to be computed.

    Examples
    --------
    >>> queue = batches_at_once(1, 50.0, BatchLine(0.010, 0.001), batch_max=16, service_scv=0.0)
    >>> round(queue.batch_mean, 2), round(queue.utilization, 2)
    (1.13, 0.49)
    """
    require(servers >= 1, "servers >= 1", servers)
    require(arrival_rate > 0, "arrival_rate > 0", arrival_rate)
    scv_min = 0.0 if servers == 1 else SERVICE_SCV_MIN
    require(scv_min <= service_scv <= 1, f"{scv_min} <= service_scv <= 1 for {servers} servers", service_scv)
    capacity = batch_capacity(servers, line, batch_max)
    if arrival_rate >= capacity:
        full = float(line.service_time(batch_max))
        return BatchQueue(1.0, float(batch_max), 1.0, np.inf, np.inf if full else 0.0)
    require(arrival_rate <= LOAD_MAX * capacity, f"arrival_rate <= 99 % of {capacity:.6g}/s", arrival_rate)
    gaps = BusyChain.solve(
        arrival_rate, line.service_time(np.maximum(np.arange(batch_max + 1), 1)), servers, service_scv
    )
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


def fewest_batch_limit(
    servers: int,
    arrival_rate: float,
    line: BatchLine,
    batch_max: int,
    response_seconds: float,
    quantile: float,
    *,
    service_scv: float = 0.1,
) -> int | None:
    """Return the least batch limit that keeps a response objective, or None if no limit does.

    The response is bounded by the wait and the time of a full batch. A small limit cannot carry the load, a
    large one makes each batch long; among those that do, the least needs the least memory.

    Parameters
    ----------
    servers, arrival_rate, line, service_scv
        As in `batches_at_once`.
    batch_max : int
        The largest limit to consider [requests].
    response_seconds, quantile : float
        P(W + s(b) > response_seconds) <= 1 - quantile shall hold [s], [1].

    Examples
    --------
    >>> fewest_batch_limit(2, 100.0, BatchLine(0.020, 0.002), 32, response_seconds=0.15, quantile=0.99)
    2
    """
    for limit in range(1, batch_max + 1):
        left = response_seconds - float(line.service_time(limit))
        if left < 0:
            return None
        if arrival_rate > LOAD_MAX * batch_capacity(servers, line, limit):
            continue
        queue = batches_at_once(servers, arrival_rate, line, limit, service_scv)
        if queue.wait_tail(left) <= 1.0 - quantile:
            return limit
    return None
