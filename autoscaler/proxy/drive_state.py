"""What a drive consists of, and what others may read of it. Nothing here changes anything."""

import asyncio
from collections.abc import Mapping, Sequence

from autoscaler.dispatch import Dispatcher
from autoscaler.dispatch.predicted_wait import PredictedWait
from autoscaler.dispatch.slots import ReplicaLoad, ReplicaState
from autoscaler.domain import Request
from autoscaler.ports import Clock, Replica, RequestListener
from autoscaler.proxy.slot_use import SlotUse, Waiter
from autoscaler.proxy.snapshot import PoolSnapshot, ReplicaSnapshot


class DriveState:
    """A dispatcher, who waits for its decisions, and who has its slots."""

    def __init__(
        self, name: str, dispatcher: Dispatcher, clock: Clock, listeners: Sequence[RequestListener] = ()
    ) -> None:
        self.name = name
        self.classes = dispatcher.classes
        """Of its queue, the most urgent first."""
        self._dispatcher = dispatcher
        self._clock = clock
        self._listeners = tuple(listeners)
        self._replicas: dict[str, Replica] = {}
        self._lost: set[str] = set()
        self._waiters: dict[str, Waiter] = {}
        self._uses: dict[int, SlotUse] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup: float | None = None
        self._slots_leaked = 0
        self._difference = 0

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
    def idle(self) -> bool:
        """Whether nobody waits and nothing runs."""
        return not self._dispatcher.waiting and not self._dispatcher.running

    def snapshot(self) -> PoolSnapshot:
        """Everything about the pool at this moment, read from the ledger."""
        dispatcher, now = self._dispatcher, self._clock.now()
        oldest = dispatcher.oldest_arrival
        return PoolSnapshot(
            pool=self.name,
            waiting=dispatcher.waiting,
            oldest_wait=0.0 if oldest is None else now - oldest,
            busy=dispatcher.running,
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
