"""Services in which requests share a slot or a replica: in batches, and with continuous batching."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from autoscaler.plan.service import Queue
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.bulk import LOAD_MAX, BatchQueue, batch_capacity, batches_at_once
from autoscaler.queueing.continuous_batching import ContinuousQueue, StepLine, continuous_batching


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
