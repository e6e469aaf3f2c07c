"""The replicas of a pool: what befalls each, and the slots that the ledger may therefore give out."""

from autoscaler.dispatch.events import (
    Backpressure,
    CallEnd,
    Probed,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
)
from autoscaler.dispatch.offering import Offering
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.dispatch.slots import Held, Slots

ReplicaEvent = ReplicaReady | ReplicaDraining | ReplicaLost | Backpressure | Probed


class Replicas:
    """Keeps the slots of the ledger in step with `Offering`."""

    def __init__(self, slots: Slots, options: DispatchOptions) -> None:
        self._slots = slots
        self.offering = Offering(options.concurrency, options.health, options.slots)
        self.suspects = self.offering.suspects
        """Replicas of which it is news that a call was served."""

    def befallen(self, event: ReplicaEvent, now: float) -> None:
        """Follow what befell a replica."""
        replica_id = event.replica_id
        match event:
            case ReplicaReady(_, slots, calls_max, learns_from):
                slots = self.offering.appear(replica_id, slots, now, learns_from)
                self._slots.ready(replica_id, slots, calls_max)
            case ReplicaDraining():
                self._slots.drain(replica_id)
                self.offering.drain(replica_id, now)
            case ReplicaLost():
                self._slots.lose(replica_id)
                self.offering.vanish(replica_id, now)
            case Backpressure(_, retry_after):
                self.offering.backpressure(replica_id, retry_after, now)
            case Probed(_, ok):
                self.offering.probed(replica_id, ok, now)

    def call_ended(self, held: Held, end: CallEnd, now: float) -> bool:
        """A call ended; return whether that may have changed what is offered."""
        return self.offering.call_ended(held[0].replica_id, end, held[2], now)

    def offer(self, now: float, appeared: str | None = None) -> None:
        """Bring the offers up to `now` [s], after one replica `appeared` or whatever else may have been."""
        offering = self.offering
        changes = offering.changes(now) if appeared is None else offering.changes_of(appeared, now)
        for replica_id, slots in changes:
            self._slots.offer(replica_id, slots)
