"""What all places of a pool of local replicas share."""

from collections.abc import Callable
from dataclasses import dataclass

from autoscaler.cold_starts import ColdStarts
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.local_process.replica_process import ReplicaProcess
from autoscaler.ports import Clock, ModelServer, ReplicaListener, Sleeps


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Given to each place."""

    options: LocalOptions
    server: ModelServer
    listener: ReplicaListener
    clock: Clock
    cold_starts: ColdStarts
    new_process: Callable[[int], ReplicaProcess]
    """Makes the next incarnation for a place, with an id and a port of its own; not started yet."""
    sleeper: Sleeps | None
    """How a replica is put to sleep; None if it cannot be."""
    wakes: ColdStarts
    """How long waking takes: measured apart from starts."""
    may_sleep: Callable[[], bool]
    """Whether there is room for one more that sleeps."""
