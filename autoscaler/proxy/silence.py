"""A limit on how long the other end of a connection may say nothing, for the path of every event.

To set and to take back a timer for each request, and again for each piece of its answer, costs more than the
piece. So there is one timer, which is left to ring; then it looks when something was heard last, and waits
on.
"""

import asyncio
from collections.abc import Callable


class Silence:
    """Calls `ring` when nothing was heard for as long as `expect` has said; owed a `close`."""

    __slots__ = ("_deadline", "_limit", "_loop", "_ring", "_rings_at", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._limit: float | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def expect(self, limit: float | None) -> None:
        """Count from now: something must be heard within `limit` [s]; None: no more, or not yet."""
        self._limit = limit
        if limit is None:
            return
        self._deadline = self._loop.time() + limit
        if self._timer is None or self._deadline < self._rings_at:
            self._set_timer()

    def heard(self) -> None:
        """Count again, from now."""
        if self._limit is not None:
            self._deadline = self._loop.time() + self._limit

    def close(self) -> None:
        """Ring no more."""
        self._limit = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._limit is None:
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._limit = None
            self._ring()
