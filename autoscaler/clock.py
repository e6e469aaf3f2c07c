"""The two clocks: the machine's own, and one that is moved by hand (replay, tests)."""

import time


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Monotonic time [s]."""
        return time.monotonic()

    def wall_time(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()


class VirtualClock:
    """Stands still until it is moved; the calendar moves with it."""

    def __init__(self, now: float = 0.0, wall_time: float = 0.0) -> None:
        self._now = now
        self._epoch = wall_time - now

    def now(self) -> float:
        """Monotonic time [s]."""
        return self._now

    def wall_time(self) -> float:
        """Seconds since the epoch, UTC."""
        return self._epoch + self._now

    def move_to(self, now: float) -> None:
        """Move forward to `now` [s]; never back."""
        if now < self._now:
            raise ValueError(f"time does not go back: at {self._now}, asked for {now}")
        self._now = now
