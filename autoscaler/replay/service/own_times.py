"""Each request takes its own time, whoever else is served beside it: the G of M/G/c.

Occupancy is the share of the slots that are busy, which is also the share of the replicas' work that is done.
"""

from collections.abc import Sequence

from autoscaler.dispatch.slots import Lease
from autoscaler.replay.replicas import SimulatedReplica
from autoscaler.replay.service.law import Engine


class OwnTimes:
    """Ends each request after the time that was drawn for it.

    Parameters
    ----------
    times : sequence of float
        By number of the request [s].
    slots : int
        Requests that a replica serves at a time [1].
    """

    def __init__(self, times: Sequence[float], slots: int, engine: Engine) -> None:
        self._times = times
        self._slots = slots
        self._at = engine.at
        self._end = engine.end

    def begin(self, lease: Lease, replica: SimulatedReplica, now: float) -> None:
        """Its end is known at once."""
        self._at(replica.ready_to_do(self._times[int(lease.request_id)], now), self._end, lease)

    def slots(self, replica: SimulatedReplica) -> int:
        """Always the same."""
        return self._slots

    def forget(self, replica: SimulatedReplica) -> None:
        """Nothing is kept of replicas."""
