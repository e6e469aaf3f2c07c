"""Services in which each slot serves one request at a time; clients wait as long as it takes, or leave."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.plan.service import Queue
from autoscaler.queueing import ggc
from autoscaler.queueing.impatience import ImpatientQueue, Patience, impatient_queue, served_wait_tail

_ROOT_STEPS = 60
_CLOSE_ENOUGH = 1e-4


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
