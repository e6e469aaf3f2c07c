"""How many slots each ready replica is offered with, now: health and concurrency limits, joined.

    ejected, or spared for a moment                          none
    told to be left alone, and another one is offered        none
    on trial                                                 one
    else                                                     what slow start and backpressure leave, of the
                                                             slots that it has, or that are learned

The ledger (`slots.py`) gives out what is offered; capacity is what is offered and nothing else.
"""

from math import inf

from autoscaler.dispatch.concurrency_limit import ConcurrencyLimit, ConcurrencyOptions
from autoscaler.dispatch.events import CallEnd
from autoscaler.dispatch.health import Health, HealthOptions, HealthState
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.dispatch.slot_learning import SlotLearning


class Offering:
    """Follows what befalls replicas; says what each is offered with."""

    def __init__(self, concurrency: ConcurrencyOptions, health: HealthOptions, slots: SlotOptions) -> None:
        self._options = concurrency
        self._learning = SlotLearning(slots)
        self.learns = False
        """Whether a replica learns its slots; if none does, its calls need not be told."""
        self._health = Health(health)
        self.suspects = self._health.suspects
        self._limits: dict[str, ConcurrencyLimit] = {}
        self._offered: dict[str, int] = {}
        self._is_any_left_alone = False
        self.next_change = inf
        """When `offered` changes next, if nothing happens [s]; or when to look whether it does."""

    def appear(self, replica_id: str, slots: int, now: float, learns_from: int | None = None) -> int:
        """A replica is ready with so many slots, or learns them up to there; return how many it has now.

        One not known starts slowly.
        """
        if learns_from is None:
            self._learning.vanish(replica_id)
        else:
            self.learns = True
            slots = self._learning.appear(replica_id, slots, learns_from, now)
        limit = self._limits.get(replica_id)
        if limit is None:
            limit = self._limits[replica_id] = ConcurrencyLimit(self._options, slots, now)
        self._health.appear(replica_id, is_news=limit.slots == slots)
        limit.resize(slots)
        self._offered[replica_id] = slots
        return slots

    def drain(self, replica_id: str, now: float) -> None:
        """A replica gets nothing new; should it be taken back, it is as warm as it was."""
        self._health.vanish(replica_id, now)

    def vanish(self, replica_id: str, now: float) -> None:
        """A replica is gone, or not ready; should it be ready again, it starts slowly."""
        self._limits.pop(replica_id, None)
        self._learning.vanish(replica_id)
        self._health.vanish(replica_id, now)

    def call_started(self, replica_id: str, request_id: str, now: float) -> None:
        """A call began, on a replica that may learn from it."""
        self._learning.started(replica_id, request_id, now)

    def learn(self, replica_id: str, request_id: str, end: CallEnd, now: float) -> bool:
        """A call is over, on a replica that may learn from it; return whether what is offered may change."""
        served = end is CallEnd.SERVED
        return self._resize(replica_id, self._learning.ended(replica_id, request_id, now, served=served))

    def paced(self, request_id: str, token_time: float, now: float) -> bool:
        """A request got its tokens so quickly; return whether what is offered may change."""
        changed = self._learning.paced(request_id, token_time, now)
        return changed is not None and self._resize(*changed)

    @property
    def slots_learned(self) -> int | None:
        """Slots of a typical replica of those that learn them [1]; None if there has been none."""
        return self._learning.typical

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
        self._is_any_left_alone = bool(left_alone)
        if any(slots for replica_id, slots in offered.items() if replica_id not in left_alone):
            offered.update(dict.fromkeys(left_alone, 0))
        times = [limit.next_change(now) for limit in ready.values()]
        self.next_change = min(*times, inf, self._health.next_change(now))
        changed = [pair for pair in offered.items() if self._offered.get(pair[0]) != pair[1]]
        self._offered = offered
        return changed

    def changes_of(self, replica_id: str, now: float) -> list[tuple[str, int]]:
        """Return the same where nothing befell any replica but this one, which appeared; mostly in O(1)."""
        if self.next_change <= now or self._is_any_left_alone:  # something is going on elsewhere too
            return self.changes(now)
        limit = self._limits[replica_id]
        slots = self._of(replica_id, limit, now)
        self.next_change = min(self.next_change, limit.next_change(now))
        if slots == self._offered[replica_id]:
            return []
        self._offered[replica_id] = slots
        return [(replica_id, slots)]

    def _resize(self, replica_id: str, slots: int | None) -> bool:
        if slots is None or replica_id not in self._limits:
            return False
        self._limits[replica_id].resize(slots)
        return True

    def _of(self, replica_id: str, limit: ConcurrencyLimit, now: float) -> int:
        state = self._health.state(replica_id)
        if state is HealthState.EJECTED or self._health.spared(replica_id, now):
            return 0
        return min(1, limit.slots) if state is HealthState.ON_TRIAL else limit.offered(now)
