"""A queue in virtual time, offered more than it can serve; the refused come back when they are told."""

import heapq
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.actions import Action, Drop, Send
from autoscaler.dispatch.events import Arrived, ReplicaReady, SlotFreed, Tick
from autoscaler.domain import DropReason, Request


@dataclass(slots=True)
class Overload:
    """What became of those who came once, and of those who came back.

    Attributes
    ----------
    first, back : Counter
        By ending: "started", or the reason of the drop.
    told : list of float
        How long the refused were told to stay away [s].
    predicted, waited : dict
        Of those who waited, by request id: the mean wait as predicted on arrival, and the wait [s].
    """

    first: Counter[str] = field(default_factory=Counter)
    back: Counter[str] = field(default_factory=Counter)
    told: list[float] = field(default_factory=list)
    predicted: dict[str, float] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)

    @property
    def back_in_time(self) -> float:
        """Share of those who came back that then started before their deadline [1]."""
        return self.back["started"] / self.back.total()


class _Run:
    """Its events in order of time."""

    def __init__(
        self, dispatcher: Dispatcher, rng: np.random.Generator, patience: float, comes_back: int
    ) -> None:
        self.dispatcher, self.rng = dispatcher, rng
        self.patience, self.comes_back = patience, comes_back
        self.seen = Overload()
        self.times_back: dict[str, int] = {}
        self.heap: list[tuple[float, int, object]] = []
        self.serials = count()

    def push(self, at: float, what: object) -> None:
        heapq.heappush(self.heap, (at, next(self.serials), what))

    def run(self) -> Overload:
        while self.heap:
            due = self.dispatcher.next_wakeup()
            if due is not None and due < self.heap[0][0]:
                self.perform(self.dispatcher.handle(Tick(), due), due)
                continue
            now, _, what = heapq.heappop(self.heap)
            if isinstance(what, int):
                what = self.arrival(what, now)
            self.perform(self.dispatcher.handle(what, now), now)
            if isinstance(what, Arrived) and (outlook := self.dispatcher.outlook(what.request.id, now)):
                self.seen.predicted[what.request.id] = outlook.mean
        return self.seen

    def arrival(self, times_back: int, now: float) -> Arrived:
        name = f"q{next(self.serials)}"
        self.times_back[name] = times_back
        return Arrived(Request(name, now, now + self.patience))

    def perform(self, actions: list[Action], now: float) -> None:
        for action in actions:
            times_back = self.times_back[action.request.id]
            endings = self.seen.back if times_back else self.seen.first
            if isinstance(action, Send):
                endings["started"] += 1
                self.seen.waited[action.request.id] = now - action.request.arrived_at
                self.push(now + self.rng.exponential(), SlotFreed(action.lease))
            elif isinstance(action, Drop):
                endings[action.reason] += 1
                if action.reason is not DropReason.DEADLINE_PASSED and times_back < self.comes_back:
                    assert action.retry_after is not None
                    self.seen.told.append(action.retry_after)
                    self.push(now + action.retry_after, times_back + 1)


def overload(
    load: float,
    *,
    slots: int = 8,
    patience: float = 5.0,
    calm: float = 60.0,
    overloaded: float = 180.0,
    comes_back: int = 1,
    seed: int = 1,
    queue: QueueOptions | None = None,
) -> Overload:
    """Run Poisson arrivals, exponential services of 1 s, and clients that wait for `patience` [s].

    `load` times the capacity arrives for `overloaded` seconds, and 0.6 times it for `calm` seconds before and
    after that.
    """
    dispatcher = Dispatcher(queue or QueueOptions())
    dispatcher.handle(ReplicaReady("r", slots), 0.0)
    run = _Run(dispatcher, np.random.default_rng(seed), patience, comes_back)
    for start, length, share in [
        (0.0, calm, 0.6), (calm, overloaded, load), (calm + overloaded, calm, 0.6),
    ]:  # fmt: skip
        for _ in range(run.rng.poisson(share * slots * length)):
            run.push(start + run.rng.uniform(0, length), 0)
    return run.run()
