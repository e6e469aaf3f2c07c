"""How a wait for a slot ends: with a slot, or without."""

from dataclasses import dataclass

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Request
from autoscaler.ports import Replica


@dataclass(frozen=True, slots=True)
class Grant:
    """A slot of a replica, to be given back by `PoolDrive.release`, once."""

    request: Request
    lease: Lease
    replica: Replica
    started_at: float
    """When the slot was granted [s, monotonic]; service time counts from here."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The queue let go of the request."""

    reason: DropReason
    expected_wait: float | None
    """How long an arrival now would wait [s]; None if nobody can tell."""
