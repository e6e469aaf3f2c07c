"""How many slots each ready replica is offered with, now: health and concurrency limits, joined.

    ejected, or spared for a moment                          none
    told to be left alone, and another one is offered        none
    on trial                                                 one
    else                                                     what slow start and backpressure leave

The ledger (`slots.py`) gives out what is offered; capacity is what is offered and nothing else.
"""

from math import inf

from autoscaler.dispatch.concurrency_limit import ConcurrencyLimit, ConcurrencyOptions
from autoscaler.dispatch.events import CallEnd
from autoscaler.dispatch.health import Health, HealthOptions, HealthState


class Offering:
    """Follows what befalls replicas; says what each is offered with."""

    def __init__(self, concurrency: ConcurrencyOptions, health: HealthOptions) -> None:
        self._options = concurrency
        self._health = Health(health)
        self.suspects = self._health.suspects
        self._limits: dict[str, ConcurrencyLimit] = {}
        self._offered: dict[str, int] = {}
        self.next_change = inf
        """When `offered` changes next, if nothing happens [s]."""

    def appear(self, replica_id: str, slots: int, now: float) -> None:
        """A replica is ready with so many slots; one not known starts slowly."""
        limit = self._limits.get(replica_id)
        if limit is None:
            self._limits[replica_id] = ConcurrencyLimit(self._options, slots, now)
        else:
            limit.resize(slots)
        self._health.appear(replica_id)
        self._offered[replica_id] = slots

    def drain(self, replica_id: str, now: float) -> None:
        """A replica gets nothing new; should it be taken back, it is as warm as it was."""
        self._health.vanish(replica_id, now)

    def vanish(self, replica_id: str, now: float) -> None:
        """A replica is gone, or not ready; should it be ready again, it starts slowly."""
        self._limits.pop(replica_id, None)
        self._health.vanish(replica_id, now)

    def backpressure(self, replica_id: str, retry_after: float, now: float) -> None:
        """A replica said that it is busy."""
        if replica_id in self._limits:
            self._limits[replica_id].backpressure(retry_after, now)

    def call_ended(self, replica_id: str, end: CallEnd, started_at: float, now: float) -> bool:
        """A call ended; return whether that could change what is offered."""
        return self._health.call_ended(replica_id, end, started_at, now)

    def probed(self, replica_id: str, ok: bool, now: float) -> None:
        """A probe was answered, or was not."""
        self._health.probed(replica_id, ok, now)

    def states(self) -> dict[str, HealthState]:
        """The verdict on the health of every ready replica."""
        return self._health.states()

    def changes(self, now: float) -> list[tuple[str, int]]:
        """Return whose offer is another at `now` [s], and what it is; note when that changes next.

        What `appear` named counts as offered before.
        """
        self._health.advance(now)
        ready = {replica_id: self._limits[replica_id] for replica_id in self._health.states()}
        offered = {replica_id: self._of(replica_id, limit, now) for replica_id, limit in ready.items()}
        left_alone = [replica_id for replica_id, limit in ready.items() if limit.retry_at > now]
        if any(slots for replica_id, slots in offered.items() if replica_id not in left_alone):
            offered.update(dict.fromkeys(left_alone, 0))
        times = [limit.next_change(now) for limit in ready.values()]
        self.next_change = min(*times, inf, self._health.next_change(now))
        changed = [pair for pair in offered.items() if self._offered.get(pair[0]) != pair[1]]
        self._offered = offered
        return changed

    def changes_of(self, replica_id: str, now: float) -> list[tuple[str, int]]:
        """Return the same where nothing befell any replica but this one, which appeared; mostly in O(1)."""
        if self.next_change < inf:  # something is going on elsewhere too
            return self.changes(now)
        limit = self._limits[replica_id]
        slots = self._of(replica_id, limit, now)
        self.next_change = limit.next_change(now)
        if slots == self._offered[replica_id]:
            return []
        self._offered[replica_id] = slots
        return [(replica_id, slots)]

    def _of(self, replica_id: str, limit: ConcurrencyLimit, now: float) -> int:
        state = self._health.state(replica_id)
        if state is HealthState.EJECTED or self._health.spared(replica_id, now):
            return 0
        return 1 if state is HealthState.ON_TRIAL else limit.offered(now)
