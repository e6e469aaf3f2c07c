"""What a law of service is to the engine, and what it may ask of it.

The engine tells the law which request was sent to which replica; the law schedules what follows on the
agenda and reports each end, once. All else is the engine's: the dispatcher, the observer, the fleet.
"""

from collections.abc import Callable
from typing import Any, Protocol

from autoscaler.dispatch.slots import Lease
from autoscaler.replay.replicas import SimulatedReplica


class Engine(Protocol):
    """What a law asks of the engine."""

    def at(self, time: float, act: Callable[[Any, float], None], subject: Any) -> None:
        """Call `act(subject, time)` when it is `time` [s], after what is entered for then already."""

    def end(self, lease: Lease, now: float) -> None:
        """The service of this lease is over. Of one that broke before, nothing more is heard."""

    def offer(self, replica: SimulatedReplica, slots: int, now: float) -> None:
        """Let the replica hold so many requests from now on [1]."""


class ServiceLaw(Protocol):
    """How long a replica works on what it holds."""

    def begin(self, lease: Lease, replica: SimulatedReplica, now: float) -> None:
        """A request was sent to a slot of this replica; its wait is over."""

    def slots(self, replica: SimulatedReplica) -> int:
        """Return how many requests the replica may hold at this moment [1]."""

    def forget(self, replica: SimulatedReplica) -> None:
        """The replica is gone; what it held, if anything, broke."""
