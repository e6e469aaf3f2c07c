"""How late the event loop is: the first sign of work on it that does not belong there.

A call is scheduled every tenth of a second, and how late it comes is the lag. The gauge tells the
*longest* of the last seconds, so that a scrape between two stalls does not miss them.
"""

import asyncio

_PERIOD = 0.1
"""Between two measurements [s]."""
_WINDOW = 15.0
"""A stall is told for at least this long, and at most for twice that [s]: longer than a scrape interval."""


class LoopLag:
    """Measures the lag of `loop` from `start` to `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._window_end = 0.0
        self._longest = 0.0
        self._longest_before = 0.0

    def start(self) -> None:
        """Begin to measure."""
        self._window_end = self._loop.time() + _WINDOW
        self._expect(self._loop.time() + _PERIOD)

    def stop(self) -> None:
        """Measure no more."""
        if self._handle is not None:
            self._handle.cancel()

    @property
    def seconds(self) -> float:
        """The longest lag of the last seconds [s]."""
        return max(self._longest, self._longest_before)

    def _expect(self, due: float) -> None:
        self._handle = self._loop.call_at(due, self._measure, due)

    def _measure(self, due: float) -> None:
        now = self._loop.time()
        if now >= self._window_end:
            self._longest_before, self._longest = self._longest, 0.0
            self._window_end = now + _WINDOW
        self._longest = max(self._longest, now - due)
        self._expect(now + _PERIOD)
