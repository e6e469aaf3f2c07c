"""Servers of known laws before a learner, in simulated time: what it should find can be computed."""

import random
from collections.abc import Callable
from math import inf

from autoscaler.dispatch.learned_slots import LearnedSlots

Law = Callable[[float], float]
"""How long a request takes with so many of them in service, s(b) [s]."""


class Sharing:
    """Serves all it has at once, each at the same pace: a batching engine, or a GPU that is shared.

    `scv` is the squared coefficient of variation of what requests need.
    """

    def __init__(self, law: Law, rng: random.Random, scv: float = 0.0) -> None:
        self.law, self._rng, self._scv = law, rng, scv
        self._left: dict[str, float] = {}
        self._at = 0.0

    def add(self, request_id: str, now: float) -> None:
        self._work_until(now)
        scv = self._scv
        self._left[request_id] = self._rng.gammavariate(1 / scv, scv) if scv else 1.0

    def next_end(self) -> tuple[float, str]:
        if not self._left:
            return inf, ""
        first = min(self._left, key=self._left.__getitem__)
        return self._at + max(0.0, self._left[first]) * self.law(len(self._left)), first

    def remove(self, request_id: str, now: float) -> None:
        self._work_until(now)
        del self._left[request_id]

    def _work_until(self, now: float) -> None:
        if self._left:
            done = (now - self._at) / self.law(len(self._left))
            self._left = {request_id: left - done for request_id, left in self._left.items()}
        self._at = now


class Workers:
    """`count` workers, each of whom serves one request in `seconds`; whoever finds none free waits inside."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._ends: dict[str, float] = {}
        self._waiting: list[str] = []

    def add(self, request_id: str, now: float) -> None:
        if len(self._ends) < self._count:
            self._ends[request_id] = now + self._seconds
        else:
            self._waiting.append(request_id)

    def next_end(self) -> tuple[float, str]:
        first = min(self._ends, key=self._ends.__getitem__, default="")
        return (self._ends[first], first) if first else (inf, "")

    def remove(self, request_id: str, now: float) -> None:
        del self._ends[request_id]
        if self._waiting:
            self._ends[self._waiting.pop(0)] = now + self._seconds


class Replica:
    """A server, its learner, and those who come: as many as there are slots, or at a rate."""

    def __init__(self, server: Sharing | Workers, learner: LearnedSlots, rng: random.Random) -> None:
        self.server, self.learner, self._rng = server, learner, rng
        self.now = 0.0
        self.slots: list[tuple[float, int]] = []
        """Every change, and when."""
        self._busy: set[str] = set()
        self._waiting = 0
        self._count = 0

    def run(self, seconds: float, rate: float | None = None) -> int:
        """Serve for so long; without a rate somebody always waits. Return the slots at the end."""
        end = self.now + seconds
        arrival = inf if rate is None else self.now + self._rng.expovariate(rate)
        self._fill(rate)
        while True:
            ends_at, request_id = self.server.next_end()
            if min(ends_at, arrival) > end:
                self.now = end
                return self.learner.slots
            if arrival < ends_at and rate is not None:
                self.now, arrival = arrival, arrival + self._rng.expovariate(rate)
                self._waiting += 1
            else:
                self.now = ends_at
                self.server.remove(request_id, self.now)
                self._busy.discard(request_id)
                if self.learner.ended(request_id, self.now, served=True):
                    self.slots.append((self.now, self.learner.slots))
            self._fill(rate)

    def _fill(self, rate: float | None) -> None:
        while len(self._busy) < self.learner.slots and (rate is None or self._waiting):
            self._waiting -= rate is not None
            self._count += 1
            request_id = f"r{self._count}"
            self._busy.add(request_id)
            self.server.add(request_id, self.now)
            self.learner.started(request_id, self.now)
