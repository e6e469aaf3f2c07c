"""How a wait for a slot ends: with a slot, or without."""

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Request
from autoscaler.domain.value import value
from autoscaler.ports import Replica


@value
class Grant:
    """A slot of a replica, to be given back by `PoolDrive.release`, once."""

    request: Request
    lease: Lease
    replica: Replica
    started_at: float
    """When the slot was granted [s, monotonic]; service time counts from here."""


@value
class Dropped:
    """The queue let go of the request."""

    reason: DropReason
    expected_wait: float | None
    """When it may be worth another try, from now [s]; None if nobody can tell."""
