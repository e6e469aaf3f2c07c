"""Requests that wait for a slot, in the order in which they shall be served.

One queue for all replicas, so that a request is bound to a replica as late as can be: it never stands
behind a slow one while another replica idles. The order is by class (`turn.py`), within a class by turns of
its tenants (`fairness.py`), and within a tenant first come, first served. How many may wait, and with how
much, is the decision of `admission.py`; the queue keeps the sums.

Two orders are needed at once. The lines of the classes hold the order of service and find a request by its
id, so that a client who leaves costs O(1). A heap holds the deadlines. Whoever leaves by dispatch or by
cancellation stays in the heap as garbage, told by its place being no longer the one that is known; the
garbage is skipped at the top, and swept out as soon as it outweighs what is alive.

While no replica is there at all, waiting is nobody's fault and a deadline made for a busy pool says little:
the clocks of those who wait stand, each for no longer than `clock_stops_max` in all, and not beyond the time
at which a client gives up. Stopping and starting them costs O(n), as rare as that is.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from autoscaler.dispatch.class_line import ClassLine, MayStart
from autoscaler.dispatch.place import Place
from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass
from autoscaler.dispatch.turn import ClassTurns
from autoscaler.domain import Mergeable, Request

_Expiry = tuple[float, int, Place]
"""When it expires [s], a serial that no other has, the place."""

_GARBAGE_MIN = 64
"""So many dead entries may lie in the heap however few are alive; a sweep shall be worth it."""


class CentralQueue:
    """Whoever takes a request out of it owns its ending.

    Parameters
    ----------
    classes : sequence of PriorityClass
        In any order.
    starvation_every : int
        One of so many dispatches may go to somebody overdue [1].
    tenant_weights : mapping
        Weight of a tenant's turns; 1 for one that is not in it.
    clock_stops_max : float
        So long may the clock of a request stand [s].
    """

    def __init__(
        self,
        classes: Sequence[PriorityClass] = DEFAULT_CLASSES,
        starvation_every: int = 4,
        tenant_weights: Mapping[str, float] | None = None,
        clock_stops_max: float = 0.0,
    ) -> None:
        by_urgency = sorted(classes, key=lambda each: each.priority)
        self.lines = {each.name: ClassLine(each, tenant_weights or {}) for each in by_urgency}
        lines = tuple(self.lines.values())
        self._more_urgent = {line.options.name: lines[:place] for place, line in enumerate(lines)}
        self._turns = ClassTurns(lines, starvation_every)
        self._clock_stops_max = clock_stops_max
        self._clocks_stand = False
        self.waiting = 0
        """Requests that wait."""
        self.bytes = 0
        """Memory that the bodies of those who wait hold [bytes]."""
        self.places: dict[str, Place] = {}
        """Who waits, by id."""
        self.expiries: list[_Expiry] = []
        """The heap of deadlines; while it is empty, nobody who waits expires."""
        self._serials = count()

    def before(self, place: Place) -> int:
        """How many are ahead of `place`, as things are now [requests]; O(waiting of its class)."""
        more_urgent = sum(line.waiting for line in self.more_urgent(place.request))
        return more_urgent + self.lines[place.request.priority_class].before(place)

    def before_new(self, request: Request) -> int:
        """How many would be ahead of a new `request` [requests]; O(classes)."""
        more_urgent = sum(line.waiting for line in self.more_urgent(request))
        return more_urgent + self.lines[request.priority_class].before_new(request.tenant)

    def more_urgent(self, request: Request) -> tuple[ClassLine, ...]:
        """Return the classes more urgent than that of `request`, the most urgent first."""
        return self._more_urgent[request.priority_class]

    @property
    def oldest_arrival(self) -> float | None:
        """When the one who has waited longest arrived [s], or None if nobody waits."""
        arrivals = [place.request.arrived_at for line in self.lines.values() if (place := line.oldest())]
        return min(arrivals, default=None)

    def next_expiry(self) -> float:
        """When the next one expires [s], or infinity if nobody who waits ever does."""
        heap = self.expiries
        while heap and self.places.get(heap[0][2].request.id) is not heap[0][2]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def push(
        self, request: Request, now: float, work: float = 0.0, cost: float = 1.0, *, returned: bool = False
    ) -> None:
        """Let `request` wait from `now` [s], in O(log n). Its id must not wait already.

        `work` is its predicted service time [s], `cost` what its turn costs its tenant [mean services]. One
        that was `returned` goes before all others of its class, and waits on.
        """
        place = Place(request, request.arrived_at if returned else now, request.deadline, work, cost)
        self.places[request.id] = place
        self.waiting += 1
        self.bytes += request.body_bytes
        line = self.lines[request.priority_class]
        if returned:
            line.push_returned(place)
        else:
            line.push(place)
        if request.deadline < inf:
            if self._clocks_stand:
                self._stop(place, now)
            heappush(self.expiries, (place.expires_at, next(self._serials), place))

    def pop(self, now: float, may_start: MayStart) -> Place | None:
        """Take out the one whose turn it is at `now` [s]; None if nobody who waits can start."""
        place = self._turns.pop(now, may_start)
        if place is None:
            return None
        self._has_left(place)
        return place

    def pop_for(self, classes: Container[str], now: float) -> Request | None:
        """Take out the one of `classes` whose turn it is at `now` [s], whether or not a slot is free here.

        Its deadline is the one that it has by now. None if nobody of them waits.
        """
        place = self._turns.pop(now, lambda _: True, classes)
        if place is None:
            return None
        self._has_left(place)
        stood = place.stood
        if self._clocks_stand:
            stood = min(stood + now - place.stands_since, self._clock_stops_max)
        return replace(place.request, deadline=min(place.request.deadline + stood, place.request.given_up_at))

    def _has_left(self, place: Place) -> None:
        del self.places[place.request.id]
        self.waiting -= 1
        self.bytes -= place.request.body_bytes
        if len(self.expiries) > _GARBAGE_MIN:
            self._sweep()

    def rows_waiting(self, merge: Mergeable) -> int:
        """How many rows wait that may share a call [1]."""
        return sum(line.rows_waiting(merge.bucket) for line in self.lines.values())

    def pop_mate(self, merge: Mergeable, rows: int) -> Place | None:
        """Take out who is next of those who may share a call; None if nobody is, or `rows` do not suffice.

        The order is that of service: urgent classes first, turns of tenants in a class, then age.
        """
        for line in self.lines.values():
            place = line.mate(merge.bucket)
            if place is None:
                continue
            if place.request.merge is None or place.request.merge.rows > rows:
                return None
            line.remove(place, served=True)
            del self.places[place.request.id]
            self.waiting -= 1
            self.bytes -= place.request.body_bytes
            return place
        return None

    def remove(self, request_id: str) -> Place | None:
        """Take out the request with this id, in O(1) on average; None if it does not wait."""
        place = self.places.pop(request_id, None)
        if place is not None:
            self.waiting -= 1
            self.bytes -= place.request.body_bytes
            self.lines[place.request.priority_class].remove(place)
            self._sweep()
        return place

    def take_expired(self, now: float) -> list[Request]:
        """Take out all whose deadline has come at `now` [s], the earliest deadline first."""
        expired = []
        while (expiry := self.next_expiry()) <= now and expiry < inf:
            request = heappop(self.expiries)[2].request
            self.remove(request.id)
            expired.append(request)
        return expired

    # -- while no replica is there

    def stop_clocks(self, now: float) -> None:
        """From `now` [s] on there is no replica."""
        if not self._clocks_stand:
            self._clocks_stand = True
            for place in self.places.values():
                self._stop(place, now)
            self._rebuild()

    def start_clocks(self, now: float) -> None:
        """From `now` [s] on there is one again."""
        if self._clocks_stand:
            self._clocks_stand = False
            for place in self.places.values():
                place.stood = min(place.stood + now - place.stands_since, self._clock_stops_max)
                place.expires_at = min(place.request.deadline + place.stood, place.request.given_up_at)
            self._rebuild()

    def _stop(self, place: Place, now: float) -> None:
        place.stands_since = now
        place.expires_at = min(place.request.deadline + self._clock_stops_max, place.request.given_up_at)

    # -- the heap of deadlines

    def _sweep(self) -> None:
        if len(self.expiries) > 2 * len(self.places) + _GARBAGE_MIN:
            self._rebuild()

    def _rebuild(self) -> None:
        self.expiries = [
            (place.expires_at, next(self._serials), place)
            for place in self.places.values()
            if place.expires_at < inf
        ]
        heapify(self.expiries)

    def __repr__(self) -> str:
        return f"<CentralQueue waiting={self.waiting} bytes={self.bytes}>"
