"""At the door: is a request that cannot start at once let in, and if not, when shall it come back?"""

from math import inf, sqrt

from autoscaler.dispatch.actions import Drop
from autoscaler.dispatch.admission import LATE_BY, Admission, QueueOptions
from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.comeback import Comebacks
from autoscaler.dispatch.door_rate import DoorRate
from autoscaler.dispatch.predicted_wait import PredictedWait, WaitModel
from autoscaler.dispatch.service_times import ServiceTimes
from autoscaler.domain import DropReason, Request

_LONG = 11.0
"""No wait is predicted so many times longer than the work of all who wait makes it [1]: those who overtake it
take nine tenths of the slots at most."""


class Door:
    """Lets requests into the queue, and measures who comes."""

    def __init__(self, options: QueueOptions, queue: CentralQueue, services: ServiceTimes) -> None:
        self._options = options
        self._queue = queue
        self._services = services
        self._admission = Admission(options)
        self._rate = DoorRate()
        self._comebacks = Comebacks()
        self._waits = WaitModel(queue, services, self._rate)
        self._replica_expected_at: float | None = None
        self.closed = False
        """Whether nothing new is let in any more."""

    def expect_replica(self, at: float | None) -> None:
        """The next replica will be ready at this time [s]; None if nobody knows."""
        self._replica_expected_at = at

    def take_hopeless(self, now: float) -> list[Drop]:
        """Take out of the queue, while no replica is there, who would give up before the next one comes."""
        at = self._replica_expected_at
        if at is None or at <= now or not self._options.refuse_late:
            return []
        return [
            Drop(request, DropReason.NO_REPLICA_IN_TIME, at - now) for request in self._queue.take_expired(at)
        ]

    def let_in(self, request: Request, slots: int, now: float, *, starts: bool) -> Drop | None:
        """Put `request` into the queue at `now` [s], unless it is refused.

        `slots` are offered, busy or free; where it `starts` at once, no bound touches it.
        """
        if not self._queue.waiting:
            self._rate.begin(now)
        self._rate.arrived(request.priority_class, now)
        work = self._services.expected(request)
        if not starts:
            reason = self._admission.over_bound(request, work, self._services.mean, self._queue)
            if reason is not None or (self._options.refuse_late and self._may_be_late(request, slots, now)):
                refusal = self._refusal(request, reason, slots, now)
                if refusal is not None:
                    return refusal
        self.push(request, work, now, returned=bool(request.tried))
        return None

    def push(self, request: Request, work: float, now: float, *, returned: bool) -> None:
        """Put `request`, of so much predicted `work` [s], into the queue without asking."""
        mean = self._services.mean
        self._queue.push(request, now, work, work / mean if mean and work else 1.0, returned=returned)

    def wait_of(self, request: Request, before: int, slots: int, now: float) -> PredictedWait | None:
        """Predict the wait of `request` behind `before` others; None if nobody can tell."""
        return self._waits.of(request, before, slots, now)

    def no_replica(self, now: float) -> float | None:
        """When one who finds no replica shall come back, from `now` [s]; None if nobody can tell."""
        at = self._replica_expected_at
        return None if at is None or at <= now else at - now

    def _may_be_late(self, request: Request, slots: int, now: float) -> bool:
        """Whether a prediction is worth its cost: not if it were in time even `_LONG` times later."""
        if request.deadline == inf:
            return False
        servers = min(slots, self._queue.lines[request.priority_class].slots_max)
        if not servers:
            return True
        longest = max(self._services.longest, request.service_time)
        work = sum(line.work(longest) for line in self._queue.lines.values() if line.waiting)
        latest = work + longest * (1 + LATE_BY * sqrt(self._queue.waiting + 1))
        return now + _LONG * latest / servers > request.deadline

    def _refusal(self, request: Request, reason: DropReason | None, slots: int, now: float) -> Drop | None:
        """Refuse `request` for a `reason` that is known, or because it would be late."""
        if not slots:
            return self._without_replica(request, reason, now)
        wait = self._waits.of(request, self._queue.before_new(request), slots, now)
        excess = 0.0 if wait is None else self._admission.too_late(request, wait, now)
        if reason is None and excess > 0:
            reason = DropReason.PREDICTED_LATE
        if reason is None:
            return None
        if wait is None:
            return Drop(request, reason)
        retry_after = self._comebacks.tell(now, excess, wait.capacity, self._rate.total(now))
        return Drop(request, reason, retry_after)

    def _without_replica(self, request: Request, reason: DropReason | None, now: float) -> Drop | None:
        late = self.no_replica(now)
        patience = min(request.deadline + self._options.clock_stops_max, request.given_up_at) - now
        if reason is None and late is not None and late >= patience:
            reason = DropReason.NO_REPLICA_IN_TIME
        return None if reason is None else Drop(request, reason, late)
