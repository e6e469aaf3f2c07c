"""What a drive consists of, and what others may read of it. Nothing here changes anything."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from autoscaler.dispatch import Dispatcher
from autoscaler.dispatch.health import HealthState
from autoscaler.dispatch.predicted_wait import PredictedWait
from autoscaler.dispatch.slots import ReplicaLoad, ReplicaState
from autoscaler.domain import Request
from autoscaler.ports import Clock, Replica, RequestListener
from autoscaler.proxy.grant import Grant
from autoscaler.proxy.shared_call import SharedCall
from autoscaler.proxy.slot_use import SlotUse, Waiter
from autoscaler.proxy.snapshot import PoolSnapshot, ReplicaSnapshot


class NewCall(SharedCall, Protocol):
    """A call that several requests will share."""

    def begin(self, grants: Sequence[Grant]) -> None:
        """Start it, with a grant for each of its items, in their order."""


class Merger(Protocol):
    """Makes one call of several requests."""

    @property
    def rows_per_call(self) -> int:
        """The most rows that a call may have; 0 while nothing is merged [1]."""

    def replica_ready(self) -> None:
        """There is a replica that can be asked what it takes."""

    def batch(self, items: Sequence[Any]) -> NewCall:
        """Return a call for the items of several requests."""


class DriveState:
    """A dispatcher, who waits for its decisions, and who has its slots."""

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher,
        clock: Clock,
        listeners: Sequence[RequestListener] = (),
        merger: Merger | None = None,
    ) -> None:
        self.name = name
        self.classes = dispatcher.classes
        """Of its queue, the most urgent first."""
        self._dispatcher = dispatcher
        self._clock = clock
        self._listeners = tuple(listeners)
        self._merger = merger
        self.rows_per_call = 0
        """Rows that a call to a replica may have, by model and objective; 0 while nothing is merged [1]."""
        self._replicas: dict[str, Replica] = {}
        self._lost: set[str] = set()
        self._waiters: dict[str, Waiter] = {}
        self._uses: dict[int, SlotUse] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup: float | None = None
        self._slots_leaked = 0
        self._difference = 0
        self.substitute: Self | None = None
        """The drive of the pool that stands in for this one."""
        self.gives_away = False
        """Whether requests that would wait here are handed over to it."""
        self.handed_over = 0
        """So many were, since the start [requests]."""
        self._stands_in_for: list[Self] = []

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id, from the ledger."""
        return self._dispatcher.busy_by_replica()

    def ready_replicas(self) -> list[Replica]:
        """Return who may be asked what takes no slot, in the order in which they came."""
        return [
            self._replicas[load.replica_id]
            for load in self._dispatcher.replicas
            if load.state is ReplicaState.READY
        ]

    @property
    def preempts(self) -> bool:
        """Whether a call may have to be stopped for a more urgent request."""
        return self._dispatcher.preempts

    @property
    def slots_learned(self) -> int | None:
        """Slots of a typical replica of those that learn them [1]; None if there has been none."""
        return self._dispatcher.slots_learned

    @property
    def ejected(self) -> set[str]:
        """Ids of ready replicas that get no requests for a while, because they failed."""
        health = self._dispatcher.health().items()
        return {replica_id for replica_id, state in health if state is HealthState.EJECTED}

    @property
    def replicas_ejected(self) -> int:
        """So many they are [1]."""
        return len(self.ejected)

    @property
    def waiting(self) -> int:
        """Requests in the queue [1]."""
        return self._dispatcher.waiting

    @property
    def closing(self) -> bool:
        """Whether nothing new is let in any more."""
        return self._dispatcher.closing

    @property
    def idle(self) -> bool:
        """Whether nobody waits and nothing runs."""
        return not self._dispatcher.waiting and not self._dispatcher.running

    def in_flight_for(self, pool: str) -> int:
        """Requests here that another pool has handed over, waiting or in service [requests]."""
        waiting = sum(waiter.came_from == pool for waiter in self._waiters.values())
        return waiting + sum(use.came_from == pool for use in self._uses.values())

    def snapshot(self) -> PoolSnapshot:
        """Everything about the pool at this moment, read from the ledger."""
        dispatcher, now = self._dispatcher, self._clock.now()
        oldest = dispatcher.oldest_arrival
        return PoolSnapshot(
            pool=self.name,
            waiting=dispatcher.waiting,
            oldest_wait=0.0 if oldest is None else now - oldest,
            busy=dispatcher.slots_busy,
            running=dispatcher.running,
            slots=dispatcher.slots_ready,
            slots_leaked=self._slots_leaked,
            ledger_difference=self._difference,
            expected_wait=dispatcher.expected_wait(),
            replicas=tuple(self._replica_snapshot(load) for load in dispatcher.replicas),
        )

    def __repr__(self) -> str:
        return f"<PoolDrive {self.name} {self._dispatcher!r}>"

    def outlook(self, request: Request) -> PredictedWait | None:
        """Predict how long a request that waits still will; None if it does not, or nobody can tell."""
        return self._dispatcher.outlook(request.id, self._clock.now())

    def _replica_snapshot(self, load: ReplicaLoad) -> ReplicaSnapshot:
        url = self._replicas[load.replica_id].url
        return ReplicaSnapshot(load.replica_id, url, load.state, load.slots, load.busy)
