"""Several proxies before one fleet, in simulated time: their dispatchers, and the divider between them.

Everything that decides is the product's own (`dispatch.Dispatcher`, `scaling.divide`); the servers are a
service time, and the look of the controller takes no time. Slots that are given up while they are in use go
to others at a later look, as in the program.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf

import numpy as np
from numpy.typing import NDArray

from autoscaler.dispatch import Dispatcher
from autoscaler.dispatch.actions import Send
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.events import Arrived, CallEnd, Event, ReplicaReady, SlotFreed
from autoscaler.domain import Request
from autoscaler.scaling.divide import Divider
from autoscaler.scaling.proxy_share import ProxyShare, within_reach

Floats = NDArray[np.float64]
_BYTES_MAX = 2**40


@dataclass(frozen=True, slots=True)
class SharedFleet:
    """A fleet, and the load on it."""

    replicas: int
    slots: int
    """Of each replica [1]."""
    service_time: float
    """Mean; exponential [s]."""
    utilization: float
    """Mean number of requests in service per slot, in one queue or many [1]."""
    requests: int = 20_000

    @property
    def rate(self) -> float:
        """Arrivals [1/s]."""
        return self.utilization * self.replicas * self.slots / self.service_time


@dataclass(eq=False)
class _Proxy:
    dispatcher: Dispatcher = field(default_factory=lambda: Dispatcher(QueueOptions(10**9, _BYTES_MAX)))
    share: dict[str, int] = field(default_factory=dict)

    def state(self) -> ProxyShare:
        return ProxyShare(self.dispatcher.waiting, dict(self.share), self.dispatcher.busy_by_replica())


class _World:
    """What happens next, and who waited how long."""

    def __init__(self, fleet: SharedFleet, proxies: int, services: Floats) -> None:
        self.fleet, self.services = fleet, services
        self.slots = {f"r{number}": fleet.slots for number in range(fleet.replicas)}
        self.proxies = {f"p{number}": _Proxy() for number in range(proxies)}
        self.waits = np.zeros(len(services))
        self._ends: list[tuple[float, int, str, SlotFreed]] = []
        self._serial = count()

    def give(self, name: str, share: dict[str, int], now: float) -> None:
        """Let a proxy have so many slots of each replica from now on."""
        proxy = self.proxies[name]
        for replica in self.slots:
            before, now_has = proxy.share.get(replica, 0), share.get(replica, 0)
            if now_has != before:
                self.report(name, ReplicaReady(replica, now_has), now)
        proxy.share = share

    def report(self, name: str, event: Event, now: float) -> None:
        """Report an event to the dispatcher of a proxy, and do what it says."""
        for action in self.proxies[name].dispatcher.handle(event, now):
            if not isinstance(action, Send):
                raise RuntimeError(f"{action} was not expected in a simulation")
            number = int(action.request.id)
            self.waits[number] = now - action.request.arrived_at
            freed = SlotFreed(action.lease, CallEnd.SERVED)
            heappush(self._ends, (now + self.services[number], next(self._serial), name, freed))

    def advance(self, until: float) -> None:
        """Let services end that end by then."""
        while self._ends and self._ends[0][0] <= until:
            at, _, name, freed = heappop(self._ends)
            self.report(name, freed, at)

    def divide(self, divider: Divider, now: float) -> None:
        """Look once, and tell everybody, those first that give slots up."""
        states = {name: proxy.state() for name, proxy in self.proxies.items()}
        wanted = divider.divide(states, self.slots, now, self.fleet.service_time)
        for name in sorted(
            wanted, key=lambda each: sum(wanted[each].values()) - sum(states[each].share.values())
        ):
            self.give(name, within_reach(wanted[name], name, states, self.slots), now)
            states[name] = self.proxies[name].state()


def waits(
    fleet: SharedFleet,
    proxies: int,
    spread: Callable[[float, np.random.Generator], int],
    interval: float | None,
    seed: int = 1,
) -> Floats:
    """Return how long each request waited [s], after a tenth that is not counted.

    Parameters
    ----------
    fleet : SharedFleet
        Servers and load.
    proxies : int
        How many there are [1]; 1 is the one queue.
    spread : callable
        (time [s], random generator) -> number of the proxy that an arrival goes to.
    interval : float or None
        Between two divisions [s]; None: divided once, evenly.
    seed : int
        The same arrivals and services for the same seed, whatever the rest.
    """
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / fleet.rate, fleet.requests))
    world = _World(fleet, proxies, rng.exponential(fleet.service_time, fleet.requests))
    divider, doors = Divider(interval or 1.0), np.random.default_rng(seed + 1)
    world.divide(divider, 0.0)
    looks = _times(interval)
    next_look = next(looks)
    for number, at in enumerate(arrivals.tolist()):
        while next_look <= at:
            world.advance(next_look)
            world.divide(divider, next_look)
            next_look = next(looks)
        world.advance(at)
        world.report(f"p{spread(at, doors) % proxies}", Arrived(Request(str(number), at, inf)), at)
    while next_look < inf and any(proxy.dispatcher.waiting for proxy in world.proxies.values()):
        world.advance(next_look)
        world.divide(divider, next_look)
        next_look = next(looks)
    world.advance(inf)
    return world.waits[fleet.requests // 10 :]


def _times(interval: float | None) -> Iterator[float]:
    """Yield the times of the looks [s]."""
    return (number * interval for number in count(1)) if interval else iter(lambda: inf, None)
