"""How long a request will wait, by its place in the order of service.

    W = (w + E[S]) / c / (1 - rho)

w is the predicted work of those who are served before it: all of more urgent classes, and in its own class
those whose turn comes first. c is the number of slots its class may hold, all busy, so that after E[S] / c
the first of them ends. rho is the part of them that more urgent requests will take which have not arrived
yet, by the rate at which they do. It is the fluid limit of the queue, and exact in the mean for exponential
services in one class (`admission.wait_behind`). How far a wait strays from it: for n before it, by
sqrt(n + 1) E[S] / c, the deviation of n + 1 exponential gaps (Erlang's distribution).

Left out: slots that go to the overdue of less urgent classes, one of `starvation_every` at most.
"""

from dataclasses import dataclass
from math import sqrt

from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.door_rate import DoorRate
from autoscaler.dispatch.service_times import ServiceTimes
from autoscaler.domain import Request

_OVERTAKEN_MAX = 0.9
"""More of its slots than this are never taken for lost to later arrivals [1]: an overload passes."""


@dataclass(frozen=True, slots=True)
class PredictedWait:
    """What the model says of one wait."""

    before: int
    """Requests that are served first [1]."""
    mean: float
    """Of the wait [s]."""
    deviation: float
    """Standard deviation of the wait [s]."""
    capacity: float
    """Services that end while all slots are busy [1/s]."""


class WaitModel:
    """Predicts waits from what waits, how long services take, and how fast requests arrive."""

    def __init__(self, queue: CentralQueue, services: ServiceTimes, rate: DoorRate) -> None:
        self._queue = queue
        self._services = services
        self._rate = rate

    def of(self, request: Request, before: int, slots: int, now: float) -> PredictedWait | None:
        """Predict the wait from `now` [s] of `request` with `before` others ahead, at `slots` busy ones.

        None if nobody can tell: no slot is there, or no service time is known.
        """
        service_time = self._services.mean_of(request.priority_class) or request.service_time
        if not slots or not service_time:
            return None
        line = self._queue.lines[request.priority_class]
        servers = min(slots, line.slots_max)
        before_own, ahead, lost = self._more_urgent(request, now)
        own = before - before_own
        if own > 0:
            ahead += line.work(service_time) * min(1.0, own / line.waiting)
        lost = min(lost / slots, _OVERTAKEN_MAX)
        return PredictedWait(
            before=before,
            mean=(ahead + service_time) / servers / (1 - lost),
            deviation=sqrt(before + 1) * service_time / servers / (1 - lost),
            capacity=slots / (self._services.mean or service_time),
        )

    def _more_urgent(self, request: Request, now: float) -> tuple[int, float, float]:
        """Requests that wait in more urgent classes, their work [s], and the work that arrives [erlang]."""
        waiting, ahead, arriving = 0, 0.0, 0.0
        for line in self._queue.more_urgent(request):
            mean = self._services.mean_of(line.options.name)
            waiting += line.waiting
            ahead += line.work(mean)
            arriving += self._rate.of(line.options.name, now) * mean
        return waiting, ahead, arriving
