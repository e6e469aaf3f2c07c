"""What a dispatcher consists of, and what others may read of it. Nothing here changes anything."""

from collections import Counter
from collections.abc import Mapping

from autoscaler.dispatch.admission import QueueOptions, wait_behind
from autoscaler.dispatch.batching import BatchLimits
from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.door import Door
from autoscaler.dispatch.health import HealthState
from autoscaler.dispatch.hedge import Hedging
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.dispatch.predicted_wait import PredictedWait
from autoscaler.dispatch.preemption import Preemption
from autoscaler.dispatch.priority_class import PriorityClass
from autoscaler.dispatch.replicas import Replicas
from autoscaler.dispatch.retry_budget import RetryBudget
from autoscaler.dispatch.service_times import ServiceTimes
from autoscaler.dispatch.slots import Lease, ReplicaLoad, Slots


class DispatcherState:
    """The parts of a dispatcher, joined."""

    def __init__(self, queue: QueueOptions, options: DispatchOptions) -> None:
        self._options = options
        self._slots = Slots()
        self._replicas = Replicas(self._slots, options)
        self._offering = self._replicas.offering
        self._queue = CentralQueue(
            queue.classes, queue.starvation_every, queue.tenant_weights, queue.clock_stops_max
        )
        self._lines = self._queue.lines
        self._services = ServiceTimes(self._lines)
        self._door = Door(queue, self._queue, self._services)
        self._retries = RetryBudget(options.retries)
        self._batches = BatchLimits(options.batching)
        self._preemption = Preemption(self._lines) if any(c.preempts for c in queue.classes) else None
        self._hedging = None if options.hedging is None else Hedging(options.hedging)
        self._now = 0.0

    def expected_wait(self, service_time_mean: float | None = None) -> float | None:
        """How long an arrival now would wait for its slot, in the mean, behind all who wait.

        Parameters
        ----------
        service_time_mean : float, optional
            E[S] >= 0 of one request in its slot [s]; as learned, if it is not given.

        Returns
        -------
        float or None
            0 if a slot is free, else by `wait_behind` [s]; None if no replica is ready to wait for, or no
            service time is known.
        """
        if self._slots.slots_free:
            return 0.0
        mean = self._services.mean or None if service_time_mean is None else service_time_mean
        servers = self._slots.slots_ready
        return wait_behind(self._queue.waiting, servers, mean) if servers and mean is not None else None

    def outlook(self, request_id: str, now: float) -> PredictedWait | None:
        """Predict how long a request that waits still will, and behind how many; O(waiting of its class).

        None if it does not wait, or nobody can tell.
        """
        place = self._queue.places.get(request_id)
        if place is None:
            return None
        return self._door.wait_of(place.request, self._queue.before(place), self._slots.slots_ready, now)

    @property
    def waiting(self) -> int:
        """Queue depth now [requests]."""
        return self._queue.waiting

    @property
    def waiting_bytes(self) -> int:
        """Memory that the bodies of those who wait hold [bytes]."""
        return self._queue.bytes

    @property
    def oldest_arrival(self) -> float | None:
        """When the first in the queue arrived [s]; None if nobody waits."""
        return self._queue.oldest_arrival

    @property
    def running(self) -> int:
        """Requests in service: live leases, also those on draining and lost replicas [requests]."""
        return self._slots.running

    def rows_per_call(self, rows_max: int) -> int:
        """Return how many of `rows_max` rows a call may have, by what was learned last; 0 of 0 [1]."""
        return self._batches.capacity(rows_max)

    @property
    def slots_busy(self) -> int:
        """Slots that live leases hold, also on draining and lost replicas [1]."""
        return self._slots.slots_busy

    def welcomes(self) -> frozenset[str]:
        """Classes of which a request of another pool would start at once; none while somebody waits here."""
        if self._queue.waiting or not self._slots.slots_free:
            return frozenset()
        return frozenset(name for name, line in self._lines.items() if line.running < line.slots_max)

    @property
    def slots_ready(self) -> int:
        """Slots of ready replicas, busy or free [1]."""
        return self._slots.slots_ready

    @property
    def learns_pace(self) -> bool:
        """Whether slots are learned from how quickly tokens come: then `Paced` is of use."""
        return self._options.slots.token_time is not None

    @property
    def slots_learned(self) -> int | None:
        """Slots of a typical replica of those that learn them [1]; None if there has been none."""
        return self._offering.slots_learned

    @property
    def slots_free(self) -> int:
        """Slots of ready replicas that are free [1]."""
        return self._slots.slots_free

    @property
    def frees_refused(self) -> int:
        """`SlotFreed` events of leases that were not live [1]; above 0 a driver has a fault."""
        return self._slots.frees_refused

    @property
    def classes(self) -> tuple[PriorityClass, ...]:
        """The classes of the queue, the most urgent first."""
        return tuple(line.options for line in self._lines.values())

    @property
    def preempts(self) -> bool:
        """Whether some class may take the slots of others: then `AwaitsFirstByte` is of use."""
        return self._preemption is not None

    @property
    def closing(self) -> bool:
        """Whether nothing new is let in any more."""
        return self._door.closed

    @property
    def replicas(self) -> tuple[ReplicaLoad, ...]:
        """Every replica that is known: state, slots and load, in the order in which they came."""
        return self._slots.replicas

    def busy_by_replica(self) -> Mapping[str, int]:
        """Live leases by replica id, of every replica that is known [1]."""
        return self._slots.busy_by_replica()

    def live_leases(self) -> tuple[Lease, ...]:
        """Every lease that is not given back yet, in order of dispatch."""
        return self._slots.live_leases()

    def running_by_class(self) -> Mapping[str, int]:
        """Slots held by class, also on draining and lost replicas [1]."""
        return {name: line.running for name, line in self._lines.items()}

    def waiting_by_class(self) -> Mapping[str, int]:
        """Queue depth by class [requests]."""
        return {name: line.waiting for name, line in self._lines.items()}

    def health(self) -> Mapping[str, HealthState]:
        """The verdict on the health of every ready replica."""
        return self._offering.states()

    def __repr__(self) -> str:
        states = Counter(replica.state.value for replica in self.replicas)
        parts = [
            f"waiting={self.waiting}",
            f"running={self.running}",
            f"slots={self.slots_ready - self.slots_free}/{self.slots_ready}",
            f"replicas={','.join(f'{n} {state}' for state, n in states.items()) or 0}",
        ]
        if self.oldest_arrival is not None:
            parts.append(f"oldest={self._now - self.oldest_arrival:.1f}s")
        if self.closing:
            parts.append("closing")
        return f"<Dispatcher {' '.join(parts)}>"
