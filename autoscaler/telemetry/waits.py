"""Waiting times over a recent window: what was really waited, beside what was promised.

The window holds the last requests, so many and so old at most. A request that the queue let go of
(full, or its deadline passed) had no wait, but its objective was missed; leaving it out would make an
overload look good. One whose client left while it waited says nothing either way, and neither does
one refused because the program is closing.
"""

from collections import deque

import numpy as np

from autoscaler.domain import DropReason, Objective, Outcome, Request, TokenUse
from autoscaler.telemetry.status import WaitsStatus

_NEVER_SERVED = float("inf")


class WaitsWindow:
    """Keeps the last waits of one pool; implements `ports.RequestListener`.

    Parameters
    ----------
    count_max : int
        Requests kept, at most.
    age_max : float
        How long each is kept, at most [s].
    """

    def __init__(self, count_max: int = 4096, age_max: float = 300.0) -> None:
        self._age_max = age_max
        self._ended_waits: deque[tuple[float, float]] = deque(maxlen=count_max)  # (when, wait)

    def arrived(self, request: Request, now: float) -> None:
        """Do nothing: its wait has only begun."""

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """Keep its wait."""
        self._ended_waits.append((now, now - request.arrived_at))

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """Do nothing: a wait ends when the service begins."""

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing: the longer wait that follows is kept beside the shorter one."""

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """Keep a miss if the queue let go of it."""
        if reason is not None and reason is not DropReason.CLOSING:
            self._ended_waits.append((now, _NEVER_SERVED))

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """Do nothing: its wait has ended long ago."""

    def summary(self, objective: Objective, now: float) -> WaitsStatus:
        """Sum up the window at `now` [s]; nothing is known of an empty one."""
        while self._ended_waits and self._ended_waits[0][0] < now - self._age_max:
            self._ended_waits.popleft()
        if not self._ended_waits:
            return WaitsStatus()
        waits = np.array([wait for _, wait in self._ended_waits])
        met = float(np.mean(waits <= objective.wait_seconds))
        served = waits[np.isfinite(waits)]
        if not len(served):
            return WaitsStatus(count=len(waits), met=met)
        p50, p95, p99 = np.quantile(served, [0.50, 0.95, 0.99], method="inverted_cdf").tolist()
        return WaitsStatus(p50=p50, p95=p95, p99=p99, count=len(waits), met=met)
