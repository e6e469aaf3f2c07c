"""What is due, in order of time; of equal times what was entered first."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

FOREVER = float("inf")

Act = Callable[[Any, float], None]
"""Called with its subject and the time [s]."""


class Agenda:
    """The heap of a simulation: acts, each with its subject and time. What is never due is not kept."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Act, Any]] = []
        self._serials = count()

    def at(self, time: float, act: Act, subject: Any) -> None:
        """Call `act(subject, time)` at `time` [s]."""
        if time < FOREVER:
            heappush(self._entries, (time, next(self._serials), act, subject))

    @property
    def next_time(self) -> float:
        """When the next act is due [s]; inf if none is."""
        return self._entries[0][0] if self._entries else FOREVER

    def run(self, until: float) -> None:
        """Perform what is due up to and including `until` [s], also what is entered meanwhile."""
        entries = self._entries
        while entries and entries[0][0] <= until:
            time, _, act, subject = heappop(entries)
            act(subject, time)
