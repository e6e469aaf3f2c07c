"""How a wait for a slot ends: with a slot, or without."""

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Request
from autoscaler.domain.value import value
from autoscaler.ports import Replica
from autoscaler.proxy.shared_call import SharedCall


@value
class Grant:
    """A slot of a replica, to be given back by `PoolDrive.release`, once."""

    request: Request
    lease: Lease
    replica: Replica
    started_at: float
    """When the slot was granted [s, monotonic]; service time counts from here."""
    shared: SharedCall | None = None
    """The call that serves it together with others; None: it makes its own."""
    pool: str = ""
    """Whose slot it is: of the pool that was asked, or of the one that stands in for it."""


@value
class Dropped:
    """The queue let go of the request."""

    reason: DropReason
    expected_wait: float | None
    """When it may be worth another try, from now [s]; None if nobody can tell."""
