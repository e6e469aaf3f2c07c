"""How fast rows arrive that can be merged, whether they wait or not."""

WINDOW = 5.0
"""A rate is that of the last one to two windows [s]."""


class RowRate:
    """Arrivals of the last seconds."""

    def __init__(self) -> None:
        self._since = self._since_before = 0.0
        self._seen = self._seen_before = 0

    def arrived(self, rows: int, now: float) -> None:
        """So many arrived at `now` [s]."""
        passed = now - self._since
        if passed > WINDOW:
            self._since_before, self._seen_before = (
                (self._since, self._seen) if passed < 2 * WINDOW else (now, 0)
            )
            self._since, self._seen = now, 0
        self._seen += rows

    def at(self, now: float) -> float:
        """Return the arrival rate at `now` [rows/s]."""
        passed = now - self._since_before
        return (self._seen + self._seen_before) / passed if passed > 0 else 0.0
