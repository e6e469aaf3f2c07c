"""What the dispatcher tells its driver to do, in this order."""

from dataclasses import dataclass

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Request


@dataclass(frozen=True, slots=True)
class Send:
    """Forward the request to the replica of the lease. When the call is over, report `SlotFreed`."""

    request: Request
    lease: Lease


@dataclass(frozen=True, slots=True)
class Drop:
    """Tell the client that its request will not be served, and why."""

    request: Request
    reason: DropReason


Action = Send | Drop
