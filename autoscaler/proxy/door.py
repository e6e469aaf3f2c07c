"""What all requests of the listener share: the ways to the pools, the bounds, and who is in flight."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from autoscaler.ports import Clock
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.body import SpoolBudget
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Route:
    """The way to one pool."""

    drive: PoolDrive
    options: RouteOptions
    upstream: Upstream


class InFlight(Protocol):
    """A request whose answer has not ended."""

    def cut(self) -> None:
        """End it before it is done, because the program ends; its client is told."""


class Door:
    """Where every request comes in."""

    def __init__(self, routes: Sequence[Route], options: ProxyOptions, clock: Clock) -> None:
        self.options = options
        self.clock = clock
        self.budget = SpoolBudget(options.body_spool_bytes_total)
        self.serials = count(1)
        """Ids for the dispatchers: the clients' own need not be unique."""
        self.draining = False
        """While it is set, every answer closes its connection."""
        self._routes = sorted(routes, key=lambda route: len(route.options.prefix), reverse=True)
        self._live: set[InFlight] = set()
        self._nothing_in_flight = asyncio.Event()
        self._nothing_in_flight.set()

    def route(self, path: str) -> Route:
        """Find the pool for `path`, by the longest prefix. Raises `Refused` if there is none."""
        for route in self._routes:
            if route.options.covers(path):
                return route
        raise Refused(Refusal(404, "no_route", f"No pool is configured for the path {path[:200]!r}."))

    @property
    def in_flight(self) -> int:
        """Requests whose answer has not ended [requests]."""
        return len(self._live)

    @contextmanager
    def entered(self, request: InFlight) -> Iterator[None]:
        """Count `request` as in flight."""
        self._live.add(request)
        self._nothing_in_flight.clear()
        try:
            yield
        finally:
            self._live.discard(request)
            if not self._live:
                self._nothing_in_flight.set()

    async def wait_until_nothing_is_in_flight(self) -> None:
        """Return when the last answer has ended."""
        await self._nothing_in_flight.wait()

    def cut(self) -> None:
        """End all that is in flight, now."""
        for request in tuple(self._live):
            request.cut()
