"""When a second pool serves what a pool was asked for: because what that one orders does not come.

A pool is *short* from the decision at which orders are late, or no more than a probe is ordered, while it
needs more than is there and may still come. A burst or an ordinary start makes none short. It stays so until
as much is ready as it needs, or for a while after the last such sign: between two probes nothing is late, and
yet nothing has changed.

While it is short, the share 1 - obtainable / needed of its demand is its substitute's. Obtainable is what is
ready; also what starts, once orders are likely to come again, so that the second pool lets go when the first
can do without it. Demand is counted at the door of the pool that was asked for, so that pool goes on wanting
all of its capacity, and is tried again as far as supply allows.

So that the substitute is sized for the share, that much of what the first pool sees is merged into what it
sees itself: arrivals, and those who wait. Requests that are really handed over do not count as its arrivals:
else it would see that demand twice, and a backlog that comes all at once as a flood that goes on.
"""

from math import inf

from autoscaler.domain import Decision, Fleet, Observation, Reason

_MEMORY = 1800.0
"""So long after its last sign a shortage is believed in [s]; as long as what is learned of supply."""
_LIKELY = 0.67
"""What starts is counted on again when orders come with this probability [1]."""


class Substitution:
    """Follows one pool that has a substitute: is it short, and what of its demand is not served there."""

    def __init__(self) -> None:
        self.is_short = False
        """Whether what it orders does not come, while it needs more than it has."""
        self.share = 0.0
        """Of its demand, what its substitute is to serve [1]."""
        self.arrival_rate = 0.0
        """The same, in arrivals [1/s]."""
        self._found_at = -inf
        self._arrivals = 0.0  # not shown yet
        self._seen: Observation | None = None

    def decided(self, decision: Decision, fleet: Fleet, now: float) -> None:
        """Take in what was decided at `now` [s] about `fleet`.

        Where nobody carries decisions out, or nobody can tell what became of them, nothing is learned.
        """
        if fleet.asked is None:
            return
        numbers = decision.numbers
        needed, late = numbers.replicas_wanted, numbers.replicas_late
        in_time = max(0, min(fleet.starting, fleet.asked - fleet.ready - late))
        fails = late > 0 or decision.reason is Reason.SUPPLY_SHORT
        if fails and needed > fleet.ready + in_time:
            self.is_short, self._found_at = True, now
        elif fleet.ready >= needed > 0 or now - self._found_at >= _MEMORY:
            self.is_short = False
        comes = not fails and numbers.supply_probability >= _LIKELY
        obtainable = fleet.ready + (in_time if comes else 0)
        self.share = max(0.0, 1.0 - obtainable / needed) if self.is_short and needed else 0.0
        self.arrival_rate = self.share * numbers.arrival_rate if self.share else 0.0

    def observed(self, observation: Observation) -> None:
        """Take in an interval of the pool that is followed, after its decision."""
        self._seen = observation
        self._arrivals = self._arrivals % 1.0 + self.share * observation.arrivals

    def demand(self, interval: float, wall_time: float, *, with_services: bool) -> Observation | None:
        """Return what the substitute shall be sized for beside its own demand; None if there is nothing.

        Parameters
        ----------
        interval, wall_time : float
            Length and end of the interval that it is to be merged with [s], [s since the epoch].
        with_services : bool
            Whether to lend it the service times of the first pool, as it knows none of its own: a guess, but
            a backlog of unknown services would be sized for as if each needed a slot of its own.
        """
        seen, arrivals = self._seen, int(self._arrivals)
        if seen is None or not self.share:
            return None
        self._arrivals -= arrivals
        waiting = round(self.share * seen.queue_depth)
        return Observation(
            interval=interval,
            arrivals=arrivals,
            completions=seen.completions if with_services else 0,
            service_time_sum=seen.service_time_sum if with_services else 0.0,
            service_time_square_sum=seen.service_time_square_sum if with_services else 0.0,
            busy_slots_mean=0.0,
            in_flight=waiting,
            queue_depth=waiting,
            oldest_wait=seen.oldest_wait if waiting else 0.0,
            wall_time=wall_time,
        )
