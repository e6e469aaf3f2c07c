"""The slots of all replicas of a pool, as far as they are learned.

Each replica has a learner of its own, for no two GPUs need be alike. A new one begins with what is typical of
those that have learned already, so that a fleet that grows under load does not grow by replicas of one slot.
"""

from autoscaler.dispatch.learned_slots import LearnedSlots, SlotOptions


class SlotLearning:
    """Follows the calls of replicas that learn; says how many slots each shall have."""

    def __init__(self, options: SlotOptions) -> None:
        self._options = options
        self._learners: dict[str, LearnedSlots] = {}
        self._typical = 0

    def appear(self, replica_id: str, slots_max: int, learns_from: int, now: float) -> int:
        """A replica is ready, with no more than `slots_max`; return how many it has now [1].

        One that is not known begins with `learns_from`, or with what is typical here.
        """
        learner = self._learners.get(replica_id)
        if learner is None:
            first = max(learns_from, self._typical)
            learner = self._learners[replica_id] = LearnedSlots(self._options, first, now, slots_max)
        else:
            learner.bounded(slots_max)
        return learner.slots

    def vanish(self, replica_id: str) -> None:
        """A replica is gone, or learns no more."""
        self._learners.pop(replica_id, None)

    def started(self, replica_id: str, request_id: str, now: float) -> None:
        """A call began."""
        learner = self._learners.get(replica_id)
        if learner is not None:
            learner.started(request_id, now)

    def ended(self, replica_id: str, request_id: str, now: float, *, served: bool) -> int | None:
        """A call is over; return the slots of its replica if they are others now [1]."""
        learner = self._learners.get(replica_id)
        if learner is None or not learner.ended(request_id, now, served=served):
            return None
        self._note_typical()
        return learner.slots

    def paced(self, request_id: str, token_time: float, now: float) -> tuple[str, int] | None:
        """A request got a token each `token_time` [s]; return whose slots are others now, and how many."""
        for replica_id, learner in self._learners.items():
            if learner.paced(request_id, token_time, now):
                self._note_typical()
                return replica_id, learner.slots
        return None

    @property
    def typical(self) -> int | None:
        """Slots of a typical replica [1]: of the lower half the largest. None before any was there."""
        slots = sorted(learner.slots for learner in self._learners.values())
        return slots[(len(slots) - 1) // 2] if slots else self._typical or None

    def _note_typical(self) -> None:
        warm = sorted(learner.slots for learner in self._learners.values() if learner.is_warm)
        self._typical = warm[(len(warm) - 1) // 2] if warm else self._typical
