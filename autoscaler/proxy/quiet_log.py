"""Says what happens too often to be said each time: once, and then no sooner than after an interval."""

import logging
import time

_INTERVAL = 10.0
"""The same thing is said no more often than this [s]."""


class QuietLog:
    """One thing that a log shall tell, seldom."""

    def __init__(self, logger: logging.Logger, interval: float = _INTERVAL) -> None:
        self._logger = logger
        self._interval = interval
        self._said_at = -interval
        self._since = 0

    def warning(self, text: str, *values: object) -> None:
        """Say it, with how often it happened since it was last said; or only count it."""
        self._since += 1
        now = time.monotonic()
        if now - self._said_at >= self._interval:
            self._logger.warning(f"{text} (%d times since this was last said)", *values, self._since)
            self._said_at, self._since = now, 0
