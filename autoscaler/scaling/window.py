"""What was wanted over the last while, for decisions that must not follow a single jitter."""

from collections import deque
from math import floor


class RecentQuantile:
    """A quantile of the values of the last `length` seconds, newest included."""

    def __init__(self, length: float, quantile: float) -> None:
        if length < 0 or not 0 <= quantile <= 1:
            raise ValueError(f"need length >= 0 and quantile in [0, 1], got {length}, {quantile}")
        self._length = length
        self._quantile = quantile
        self._values: deque[tuple[float, int]] = deque()

    def add(self, value: int, now: float) -> None:
        """Take in a value at `now` [s] and forget those older than the window."""
        self._values.append((now, value))
        while self._values[0][0] < now - self._length:
            self._values.popleft()

    def value(self) -> int:
        """Return the quantile, an observed value (the lower of two). Raises ValueError if empty."""
        if not self._values:
            raise ValueError("no value yet")
        ordered = sorted(value for _, value in self._values)
        return ordered[floor(self._quantile * (len(ordered) - 1))]
