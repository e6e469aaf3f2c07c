"""What can happen on the request path. The driver reports each; the dispatcher answers with actions."""

from dataclasses import dataclass

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import Request


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request is at the door."""

    request: Request


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client of a *waiting* request left. (Of one in service: end the call, then `SlotFreed`.)"""

    request_id: str


@dataclass(frozen=True, slots=True)
class SlotFreed:
    """The upstream call of a lease is over, however it ended. Exactly once for each `Send`."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Returned:
    """The call of a lease provably did not execute: the slot is free, and the request waits again, first.

    In the place of `SlotFreed`. The request is the one that was sent; its deadline still holds.
    """

    lease: Lease
    request: Request


@dataclass(frozen=True, slots=True)
class ReplicaReady:
    """A replica passed its readiness probe, is ready again, or is taken back from draining."""

    replica_id: str
    slots: int


@dataclass(frozen=True, slots=True)
class ReplicaDraining:
    """A replica shall get nothing new; what it holds it finishes."""

    replica_id: str


@dataclass(frozen=True, slots=True)
class ReplicaLost:
    """A replica is gone or not ready. Leases on it end by their own `SlotFreed`, as their calls break."""

    replica_id: str


@dataclass(frozen=True, slots=True)
class Closing:
    """The program drains: nothing new is let in; what waits and what runs goes on."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing happened, but a time named by `next_wakeup` has come."""


Event = (
    Arrived | Cancelled | SlotFreed | Returned | ReplicaReady | ReplicaDraining | ReplicaLost | Closing | Tick
)
