"""Requests that wait for a slot, in the order in which they shall be served: first come, first served.

One queue for all replicas, so that a request is bound to a replica as late as can be: it never stands
behind a slow one while another replica idles. How many may wait, and with how many bytes, is the
decision of `admission.py`; the queue keeps both sums.

Two orders are needed at once. An ordered dictionary holds the order of service and finds a request by
its id, so that a client who leaves costs O(1). A heap holds the deadlines. Whoever leaves by dispatch
or by cancellation stays in the heap as garbage, told by its entry being no longer the one in the
dictionary; the garbage is skipped at the top, and swept out as soon as it outweighs what is alive.
"""

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from autoscaler.domain import Request

_Entry = tuple[float, int, Request]
"""Deadline, a serial that no other entry has, the request."""

_GARBAGE_MIN = 64
"""So many dead entries may lie in the heap however few are alive; a sweep shall be worth it."""


class CentralQueue:
    """First come, first served; whoever takes a request out of it owns its ending."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, _Entry] = OrderedDict()
        self._deadlines: list[_Entry] = []
        self._serials = count()
        self._bytes = 0

    def __len__(self) -> int:
        """Requests that wait; O(1)."""
        return len(self._waiting)

    def __contains__(self, request_id: object) -> bool:
        """Whether the request with this id waits; O(1)."""
        return request_id in self._waiting

    @property
    def bytes(self) -> int:
        """Memory that the bodies of those who wait hold [bytes]."""
        return self._bytes

    @property
    def first(self) -> Request | None:
        """Whose turn it is, or None if nobody waits."""
        entry = next(iter(self._waiting.values()), None)
        return None if entry is None else entry[2]

    @property
    def oldest_arrival(self) -> float | None:
        """When the first in the queue arrived [s], or None if nobody waits."""
        first = self.first
        return None if first is None else first.arrived_at

    def earliest_deadline(self) -> float | None:
        """When the next one expires [s], or None if nobody who waits ever does."""
        heap = self._deadlines
        while heap and self._waiting.get(heap[0][2].id) is not heap[0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def push(self, request: Request) -> None:
        """Put `request` at the end, in O(log n). Its id must not wait already."""
        entry = (request.deadline, next(self._serials), request)
        self._waiting[request.id] = entry
        self._bytes += request.body_bytes
        if request.deadline < inf:
            heappush(self._deadlines, entry)

    def push_first(self, request: Request) -> None:
        """Put `request`, which was first before, back at the head, in O(log n)."""
        self.push(request)
        self._waiting.move_to_end(request.id, last=False)

    def remove(self, request_id: str) -> Request | None:
        """Take out the request with this id, in O(1) on average; None if it does not wait."""
        entry = self._waiting.pop(request_id, None)
        if entry is None:
            return None
        self._bytes -= entry[2].body_bytes
        if len(self._deadlines) > 2 * len(self._waiting) + _GARBAGE_MIN:
            self._deadlines = [alive for alive in self._waiting.values() if alive[0] < inf]
            heapify(self._deadlines)
        return entry[2]

    def take_expired(self, now: float) -> list[Request]:
        """Take out all whose deadline has come at `now` [s], the earliest deadline first."""
        expired = []
        while (deadline := self.earliest_deadline()) is not None and deadline <= now:
            request = heappop(self._deadlines)[2]
            self.remove(request.id)
            expired.append(request)
        return expired

    def __repr__(self) -> str:
        return f"<CentralQueue waiting={len(self)} bytes={self._bytes}>"
