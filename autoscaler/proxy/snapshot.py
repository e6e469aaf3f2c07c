"""What one pool looks like at one moment, for those who only read: control loop, admin, dashboard."""

from dataclasses import dataclass

from autoscaler.dispatch.slots import ReplicaState


@dataclass(frozen=True, slots=True)
class ReplicaSnapshot:
    """One replica, as the ledger sees it."""

    id: str
    url: str
    state: ReplicaState
    slots: int
    """Requests it serves at a time [1]."""
    busy: int
    """Slots in use [1]."""


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """Queue, slots and replicas of one pool."""

    pool: str
    waiting: int
    """Queue depth [requests]."""
    oldest_wait: float
    """How long the first in the queue has waited [s]; 0 if nobody waits."""
    busy: int
    """Slots in use, also on draining and lost replicas [1]."""
    running: int
    """Requests that have slots [requests]; fewer than `busy` where one has several, for its rows."""
    slots: int
    """Slots of ready replicas [1]."""
    slots_leaked: int
    """Slots that had to be freed because their request ended without doing so [1]; stays 0."""
    ledger_difference: int
    """Slots that had to be freed, and live calls without a slot, when that was last looked at [1]; is 0."""
    expected_wait: float | None
    """How long an arrival now would wait [s]; None if nobody can tell."""
    replicas: tuple[ReplicaSnapshot, ...]
