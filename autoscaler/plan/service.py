"""How replicas serve, each way with its queueing model: replicas and a rate in, a queue at rest out.

One by one        G/G/c by two moments of arrivals and service; with impatient clients M/M/c+G
In batches        M/G^[b]/c with s(b) = alpha + beta b, Poisson arrivals
Continuous        replicas that advance all their requests a token a step of t(b) = alpha + beta b

Utilization is what the band is about. One by one it is a / c, busy slots / slots. With continuous batching it
is busy slots / slots too. In batches it is the share of what full batches could carry: an idle server starts
whatever is there, so servers look busy long before they are full.

A wait is that for a slot. Clients who give up count as requests that missed the objective.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from autoscaler.queueing import ggc
from autoscaler.queueing.bulk import LOAD_MAX, BatchLine, BatchQueue, batch_capacity, batches_at_once
from autoscaler.queueing.continuous_batching import ContinuousQueue, StepLine, continuous_batching
from autoscaler.queueing.impatience import ImpatientQueue, Patience, impatient_queue, served_wait_tail

_ROOT_STEPS = 60
_CLOSE_ENOUGH = 1e-4


class Queue(Protocol):
    """A queue at rest."""

    @property
    def utilization(self) -> float:
        """See the top of the file [1]."""

    @property
    def probability_of_wait(self) -> float:
        """P(W > 0) [1]."""

    @property
    def wait_mean(self) -> float:
        """E[W] [s]; infinite if more comes than can be served."""

    @property
    def more(self) -> Mapping[str, float]:
        """Figures that only this kind of service has, by name."""

    def wait_tail(self, wait_seconds: float) -> float:
        """Fraction of the requests that wait longer, or give up [1]."""

    def wait_quantile(self, quantile: float) -> float:
        """The least wait [s] that no more than 1 - quantile of the requests exceed."""


class Service(Protocol):
    """How replicas serve."""

    @property
    def slots_per_replica(self) -> int:
        """[1]."""

    @property
    def capacity(self) -> float:
        """Requests that a replica can finish [1/s]."""

    @property
    def overload_is_stable(self) -> bool:
        """Whether more may come than can be served, since clients give up."""

    def queue(self, replicas: int, arrival_rate: float) -> Queue:
        """The queue of so many replicas."""


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Each slot serves one request at a time.

    Attributes
    ----------
    service_time_mean : float
        E[S] > 0 [s].
    service_scv, arrival_scv : float
        Variance / mean², in [0, 10] [1].
    slots_per_replica : int
        Requests that a replica serves at a time, each as fast as alone [1].
    """

    service_time_mean: float
    service_scv: float = 1.0
    arrival_scv: float = 1.0
    slots_per_replica: int = 1
    overload_is_stable: bool = field(default=False, init=False)

    @property
    def capacity(self) -> float:
        return self.slots_per_replica / self.service_time_mean

    def queue(self, replicas: int, arrival_rate: float) -> Queue:
        return _GeneralQueue(self, replicas * self.slots_per_replica, arrival_rate)


@dataclass(frozen=True, slots=True)
class _GeneralQueue:
    service: OneByOne
    servers: int
    arrival_rate: float
    more: Mapping[str, float] = field(default_factory=dict, init=False)

    @property
    def _scvs(self) -> dict[str, float]:
        return {"arrival_scv": self.service.arrival_scv, "service_scv": self.service.service_scv}

    @property
    def _queue(self) -> tuple[float, float, float]:
        return self.servers, self.arrival_rate, self.service.service_time_mean

    @property
    def utilization(self) -> float:
        return self.arrival_rate * self.service.service_time_mean / self.servers

    @property
    def probability_of_wait(self) -> float:
        return ggc.probability_of_wait(*self._queue, **self._scvs)

    @property
    def wait_mean(self) -> float:
        return ggc.wait_mean(*self._queue, **self._scvs)

    def wait_tail(self, wait_seconds: float) -> float:
        return ggc.wait_tail(*self._queue, wait_seconds, **self._scvs)

    def wait_quantile(self, quantile: float) -> float:
        return ggc.wait_quantile(*self._queue, quantile, **self._scvs)


@dataclass(frozen=True, slots=True)
class Impatient:
    """Each slot serves one request at a time, and clients leave when they have waited too long.

    Poisson arrivals and exponential service. Waits are those of the clients who are served; `wait_tail` also
    counts those who left.
    """

    service_time_mean: float
    patience: Patience
    slots_per_replica: int = 1
    overload_is_stable: bool = field(default=True, init=False)

    @property
    def capacity(self) -> float:
        return self.slots_per_replica / self.service_time_mean

    def queue(self, replicas: int, arrival_rate: float) -> Queue:
        servers = replicas * self.slots_per_replica
        queue = impatient_queue(servers, arrival_rate, self.service_time_mean, self.patience)
        return _ImpatientQueue(self, servers, arrival_rate, queue)


@dataclass(frozen=True, slots=True)
class _ImpatientQueue:
    service: Impatient
    servers: int
    arrival_rate: float
    at_rest: ImpatientQueue

    @property
    def utilization(self) -> float:
        return self.at_rest.utilization

    @property
    def probability_of_wait(self) -> float:
        return self.at_rest.probability_of_wait

    @property
    def wait_mean(self) -> float:
        return self.at_rest.wait_mean_served

    @property
    def more(self) -> Mapping[str, float]:
        return {"fraction_lost": self.at_rest.fraction_lost}

    def wait_tail(self, wait_seconds: float) -> float:
        lost = self.at_rest.fraction_lost
        return lost + (1.0 - lost) * self._served_tail(wait_seconds)

    def wait_quantile(self, quantile: float) -> float:
        if self.at_rest.probability_of_wait <= 1.0 - quantile or self._served_tail(0.0) <= 1.0 - quantile:
            return 0.0
        low, high = 0.0, self.service.service_time_mean
        while self._served_tail(high) > 1.0 - quantile:
            low, high = high, 2.0 * high
        for _ in range(_ROOT_STEPS):
            if high - low <= _CLOSE_ENOUGH * high:
                break
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._served_tail(middle) > 1.0 - quantile else (low, middle)
        return high

    def _served_tail(self, wait_seconds: float) -> float:
        service = self.service
        return served_wait_tail(
            self.servers, self.arrival_rate, service.service_time_mean, service.patience, wait_seconds
        )


@dataclass(frozen=True, slots=True)
class Batches:
    """Each slot serves a batch at a time: what waits when it is freed, up to `batch_max`.

    Attributes
    ----------
    line : BatchLine
        Mean time of a batch by its size.
    batch_max : int
        [requests].
    service_scv : float
        Of the times of batches of one size, in [0.05, 1] [1].
    slots_per_replica : int
        Batches that a replica serves at a time [1].
    """

    line: BatchLine
    batch_max: int
    service_scv: float = 0.1
    slots_per_replica: int = 1
    overload_is_stable: bool = field(default=False, init=False)

    @property
    def capacity(self) -> float:
        return batch_capacity(self.slots_per_replica, self.line, self.batch_max)

    def queue(self, replicas: int, arrival_rate: float) -> Queue:
        return _BatchQueue(self, replicas, arrival_rate)


@dataclass(frozen=True)
class _BatchQueue:
    service: Batches
    replicas: int
    arrival_rate: float

    @property
    def utilization(self) -> float:
        return self.arrival_rate / (self.replicas * self.service.capacity)

    @cached_property
    def at_rest(self) -> BatchQueue:
        """Solved when it is asked for: that takes a while, and the band needs only the utilization."""
        service = self.service
        # Between 99 % and all of the capacity the chain is too long to be solved: taken for overload.
        share = self.utilization if self.utilization <= LOAD_MAX else 1.0
        return batches_at_once(
            self.replicas * service.slots_per_replica,
            share * self.replicas * service.capacity,
            service.line,
            service.batch_max,
            service.service_scv,
        )

    @property
    def probability_of_wait(self) -> float:
        return self.at_rest.probability_of_wait

    @property
    def wait_mean(self) -> float:
        return self.at_rest.wait_mean

    @property
    def more(self) -> Mapping[str, float]:
        return {"batch_mean": self.at_rest.batch_mean, "occupancy": self.at_rest.utilization}

    def wait_tail(self, wait_seconds: float) -> float:
        return self.at_rest.wait_tail(wait_seconds)

    def wait_quantile(self, quantile: float) -> float:
        return self.at_rest.wait_quantile(quantile)


@dataclass(frozen=True, slots=True)
class Continuous:
    """A replica advances all its requests a token a step.

    Attributes
    ----------
    line : StepLine
        What a request costs.
    slots_per_replica : int
        The most requests in a replica [1].
    """

    line: StepLine
    slots_per_replica: int
    overload_is_stable: bool = field(default=False, init=False)

    @property
    def capacity(self) -> float:
        return float(self.line.throughput(self.slots_per_replica))

    def queue(self, replicas: int, arrival_rate: float) -> Queue:
        return _ContinuousQueue(
            continuous_batching(replicas, self.slots_per_replica, arrival_rate, self.line)
        )


@dataclass(frozen=True, slots=True)
class _ContinuousQueue:
    at_rest: ContinuousQueue

    @property
    def utilization(self) -> float:
        return self.at_rest.occupancy

    @property
    def probability_of_wait(self) -> float:
        return self.at_rest.probability_of_wait

    @property
    def wait_mean(self) -> float:
        return self.at_rest.wait_mean

    @property
    def more(self) -> Mapping[str, float]:
        return {
            "requests_mean": self.at_rest.requests_mean,
            "first_token_mean": self.at_rest.first_token_mean,
            "time_per_token_mean": self.at_rest.time_per_token_mean,
        }

    def wait_tail(self, wait_seconds: float) -> float:
        return self.at_rest.wait_tail(wait_seconds)

    def wait_quantile(self, quantile: float) -> float:
        waits, mean = self.at_rest.probability_of_wait, self.at_rest.wait_mean
        if waits <= 1.0 - quantile:
            return 0.0
        # Who waits, waits exponentially long.
        return mean / waits * math.log(waits / (1.0 - quantile))
