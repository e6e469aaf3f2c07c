"""The replicas of one pool, as the platform sees them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many replicas there are in each state, and what a start costs in time.

    Attributes
    ----------
    ready, starting, draining : int
        Replicas that take requests, that will, and that finish what they hold and then end [1].
    slots_per_replica : int
        Requests one replica serves at a time [1].
    cold_start_mean, cold_start_p90 : float
        From the decision to readiness, as measured here, or as stated until measured [s]; of one that is
        woken while one sleeps.
    asleep : int
        Replicas that can be woken [1]; of no use until they are.
    overdue : int
        Replicas that were asked for and that the platform itself does not count on any more [1]: no node is
        found for them, or they should have come long ago. They are not among the starting ones.
    asked : int or None
        What the platform was asked for here, and has accepted, ready and starting together [1]; None if
        nobody carries decisions out, so that nothing can be expected to come of them.
    edited : int or None
        What somebody else has asked the platform for since [1]; None if nobody has, or nobody could tell.
    """

    ready: int
    starting: int
    draining: int
    slots_per_replica: int
    cold_start_mean: float
    cold_start_p90: float
    asleep: int = 0
    overdue: int = 0
    asked: int | None = None
    edited: int | None = None

    def __post_init__(self) -> None:
        counts = (self.ready, self.starting, self.draining, self.asleep, self.overdue)
        if min(counts) < 0:
            raise ValueError(f"need replica counts >= 0, got {', '.join(map(str, counts))}")
        if self.slots_per_replica < 1:
            raise ValueError(f"need slots_per_replica >= 1, got {self.slots_per_replica}")

    @property
    def ordered(self) -> int:
        """Replicas that are or will be of use: ready and starting [1]."""
        return self.ready + self.starting
