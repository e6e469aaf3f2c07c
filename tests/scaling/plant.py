"""A fluid model of a pool, for scripts of the controller: no randomness, no waiting in real time.

Arrivals come at a given rate, are served in `service` seconds, queue when slots are short; replicas start
after `start` seconds, as far as there is supply. What is ordered beyond is shown as starting (or, with
`hides`, not shown), and comes once there is supply. With `narrow`, all replicas together serve no more than
so many requests a second, however many they are: their services get longer. It is deliberately simple: tests
of the controller need a world that answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf

from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.scaling import Controller


@dataclass
class Plant:
    """A pool that obeys the decisions of a controller."""

    controller: Controller
    replicas: int
    service: float = 10.0
    start: float = 60.0
    slots: int = 1
    interval: float = 10.0
    supply: int = 10_000
    hides: bool = False
    narrow: float = inf
    now: float = 0.0
    queue: float = 0.0
    busy: float = 0.0
    starting: list[float] = field(default_factory=list)
    pending: int = 0
    asked: int | None = None
    edited: int | None = None
    decisions: list[Decision] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def run(self, duration: float, rate: float | Callable[[float], float], *, measured: bool = True) -> None:
        """Let `duration` [s] pass under `rate` [1/s]."""
        for _ in range(round(duration / self.interval)):
            self.now += self.interval
            self.starting, ready = (
                [at for at in self.starting if at > self.now],
                [at for at in self.starting if at <= self.now],
            )
            self.replicas += len(ready)
            self._supply()
            observation = self._serve(rate(self.now) if callable(rate) else rate)
            starting = len(self.starting) + (0 if self.hides else self.pending)
            fleet = Fleet(self.replicas, starting, 0, self.slots, self.start, self.start)
            fleet = replace(fleet, asked=self.asked, edited=self.edited)
            self.edited = None
            decision = self.controller.step(observation if measured else None, fleet, self.now)
            self.decisions.append(decision)
            self._obey(decision.desired)
            self.sizes.append(self.replicas + len(self.starting) + self.pending)

    def _serve(self, rate: float) -> Observation:
        arrivals = rate * self.interval
        slots = self.replicas * self.slots
        offered = self.queue + arrivals
        crowded = offered > self.narrow * self.interval
        service = max(self.service, slots / self.narrow) if crowded else self.service
        capacity = slots * self.interval / service
        served = min(offered, capacity)
        self.queue = offered - served
        self.busy = served * service / self.interval
        return Observation(
            interval=self.interval,
            arrivals=round(arrivals),
            completions=round(served),
            service_time_sum=round(served) * service,
            service_time_square_sum=2 * round(served) * service**2,
            busy_slots_mean=self.busy,
            in_flight=round(self.queue + self.busy),
            queue_depth=int(self.queue),
            oldest_wait=0.0 if rate == 0 else self.queue / rate,
            wall_time=1e6 + self.now,
        )

    def _obey(self, desired: int) -> None:
        self.asked = desired
        missing = desired - self.replicas - len(self.starting) - self.pending
        if missing > 0:
            self.pending += missing
            self._supply()
            return
        called_off = min(-missing, self.pending)
        self.pending -= called_off
        ended = min(-missing - called_off, len(self.starting))
        del self.starting[len(self.starting) - ended :]
        self.replicas += missing + called_off + ended

    def _supply(self) -> None:
        """Start what was ordered, as far as there is supply."""
        room = max(0, self.supply - self.replicas - len(self.starting))
        started = min(self.pending, room)
        self.pending -= started
        self.starting += [self.now + self.start] * started
