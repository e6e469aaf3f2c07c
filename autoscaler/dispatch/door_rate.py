"""How fast requests arrive, by class, while not all of them start at once.

Counted from the moment at which the queue begins to form, for an average over a quiet hour before a burst
says nothing about the burst; and forgotten by windows, for what arrived minutes ago says little about now.
"""

WINDOW = 30.0
"""A rate is that of the last one to two windows, or since the queue began to form [s]."""

_SEEN_MIN = 5
"""Of fewer arrivals no rate is told [requests]."""


class DoorRate:
    """Arrivals that did not start at once, let in or refused."""

    def __init__(self) -> None:
        self._since = self._since_before = 0.0
        self._seen: dict[str, int] = {}
        self._seen_before: dict[str, int] = {}

    def begin(self, now: float) -> None:
        """Count from `now` [s]: the queue begins to form."""
        self._since = self._since_before = now
        self._seen, self._seen_before = {}, {}

    def arrived(self, priority_class: str, now: float) -> None:
        """Count one."""
        if now - self._since > WINDOW:
            self._since_before, self._seen_before = self._since, self._seen
            self._since, self._seen = now, {}
        self._seen[priority_class] = self._seen.get(priority_class, 0) + 1

    def of(self, priority_class: str, now: float) -> float:
        """Arrival rate of one class [1/s]; 0 if too few came to tell."""
        return self._rate(self._seen.get(priority_class, 0) + self._seen_before.get(priority_class, 0), now)

    def total(self, now: float) -> float:
        """Arrival rate of all classes [1/s]; 0 if too few came to tell."""
        return self._rate(sum(self._seen.values()) + sum(self._seen_before.values()), now)

    def _rate(self, seen: int, now: float) -> float:
        elapsed = now - self._since_before
        return seen / elapsed if seen >= _SEEN_MIN and elapsed > 0 else 0.0
