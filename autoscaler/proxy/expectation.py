"""When the next replica will be ready, as told to the queue of a pool that has none.

    asleep      an arrival wakes the pool, and a start takes what starts take; told anew with each arrival
    starting    what starts take, from when the first one was ordered
    else        nobody knows: something is ready, or a start is late

What starts take is the mean of those measured; whoever could not wait so long would more likely than not
wait in vain.
"""

from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.proxy.drive import PoolDrive


class Expectation:
    """Follows the decisions about one pool; a `ports.DecisionLog`.

    Parameters
    ----------
    drive : PoolDrive
        Of the pool; is told after every decision.
    delay : float
        From an arrival that wakes the pool to the decision [s].
    """

    def __init__(self, drive: PoolDrive, delay: float) -> None:
        self._drive = drive
        self._delay = delay
        self._ordered_at: float | None = None

    def record(
        self,
        pool: str,
        observation: Observation | None,
        fleet: Fleet,
        decision: Decision,
        now: float,
        wall_time: float,
    ) -> None:
        """Tell what the decision means for those who wait."""
        self.follow(fleet, decision.desired, now)

    def follow(self, fleet: Fleet, desired: int, now: float) -> None:
        """Tell when a replica of `fleet` will be ready, which is to have `desired`, at `now` [s]."""
        self._drive.replica_expected(self._at(fleet, desired, now))

    def _at(self, fleet: Fleet, desired: int, now: float) -> float | None:
        if fleet.ready or fleet.draining:  # one that drains can be had back at once
            self._ordered_at = None
            return None
        if not fleet.starting and not desired:
            self._ordered_at = None
            return now + self._delay + fleet.cold_start_mean
        if self._ordered_at is None:
            self._ordered_at = now
        at = self._ordered_at + fleet.cold_start_mean
        return at if at > now else None
