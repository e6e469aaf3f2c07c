"""Service in batches: a replica takes up to as many requests as it has slots, for s(b) = alpha + beta b.

A free replica starts at once with what waits. While a batch runs the replica is offered no more than the
batch holds, so that whoever comes next waits in the central queue, for the replica that is free first;
when the batch ends, all its slots are offered again and the next batch is what the dispatcher sends at that
moment. With one replica this is the queue M/D^[b]/1 of Bailey (see `autoscaler.queueing.bulk`).

Occupancy is requests in service / slots, so it counts how full the batches are: it is 1 only while every
batch is full and follows at once on the one before. A replica that works all the time on batches of one is
occupied 1 / slots. It tells spare capacity, as it does for single requests; the share of time with any
batch running is what a GPU meter would show.
"""

from dataclasses import dataclass, field

from autoscaler.dispatch.slots import Lease
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.replay.replicas import SimulatedReplica
from autoscaler.replay.service.law import Engine


@dataclass(slots=True)
class _Batches:
    """Of one replica: what the next batch will hold, and what the running one does."""

    next: list[Lease] = field(default_factory=list)
    running: list[Lease] = field(default_factory=list)


class Batches:
    """Forms a batch whenever a replica is free and holds something.

    Parameters
    ----------
    line : BatchLine
        Time of a batch by its size [s].
    slots : int
        The largest batch [requests].
    """

    def __init__(self, line: BatchLine, slots: int, engine: Engine) -> None:
        self._times = [float(line.service_time(size)) for size in range(slots + 1)]
        self._slots = slots
        self._engine = engine
        self._replicas: dict[str, _Batches] = {}

    def begin(self, lease: Lease, replica: SimulatedReplica, now: float) -> None:
        """Start a batch as soon as all that come at this moment are there."""
        batches = self._replicas.setdefault(replica.id, _Batches())
        if not batches.next:
            self._engine.at(now, self._start, replica)
        batches.next.append(lease)

    def slots(self, replica: SimulatedReplica) -> int:
        """As many as the running batch holds, else the largest batch."""
        batches = self._replicas.get(replica.id)
        return len(batches.running) if batches and batches.running else self._slots

    def forget(self, replica: SimulatedReplica) -> None:
        """Its batch has no end."""
        self._replicas.pop(replica.id, None)

    def _start(self, replica: SimulatedReplica, now: float) -> None:
        batches = self._replicas.get(replica.id)
        if batches is None:
            return
        batches.running, batches.next = batches.next, []
        self._engine.offer(replica, len(batches.running), now)
        self._engine.at(replica.ready_to_do(self._times[len(batches.running)], now), self._finish, replica)

    def _finish(self, replica: SimulatedReplica, now: float) -> None:
        batches = self._replicas.get(replica.id)
        if batches is None:
            return
        ended, batches.running = batches.running, []
        for lease in ended:
            self._engine.end(lease, now)
        self._engine.offer(replica, self._slots, now)
