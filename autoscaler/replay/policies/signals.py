"""What the peers look at: concurrency, smoothed and late.

Those that scale on the load of a processor in their examples are given concurrency instead: requests in
service and waiting, per slot of the ready replicas. That is what people with GPUs feed them, since a GPU's
own busy ratio says little of how much more it could take. A metric reaches a scaler some time after it was
true: it is scraped, averaged, cached and asked for. `Lagged` keeps what was, until it is seen.
"""

from collections import deque
from typing import Generic, TypeVar

from autoscaler.domain import Observation

Seen = TypeVar("Seen")


def concurrency(observation: Observation) -> float:
    """Requests in service, on average over the interval, and waiting at its end [requests]."""
    return observation.busy_slots_mean + observation.queue_depth


class Lagged(Generic[Seen]):
    """A signal that is seen `delay` [s] after it was true."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._on_the_way: deque[tuple[float, Seen]] = deque()
        self._seen: Seen | None = None

    def put(self, value: Seen, now: float) -> Seen | None:
        """Take in what is true now; return the newest that is seen by now, None before there is any."""
        self._on_the_way.append((now, value))
        while self._on_the_way and self._on_the_way[0][0] <= now - self._delay:
            self._seen = self._on_the_way.popleft()[1]
        return self._seen


class SlidingMean:
    """Mean of a value over the last `window` [s], each weighing as long as it lasted."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._parts: deque[tuple[float, float, float]] = deque()  # end, length, value

    def put(self, value: float, length: float, now: float) -> float:
        """Take in the mean of the last `length` [s]; return that of the window."""
        self._parts.append((now, length, value))
        while self._parts[0][0] <= now - self._window:
            self._parts.popleft()
        total = sum(part[1] for part in self._parts)
        return sum(part[1] * part[2] for part in self._parts) / total
