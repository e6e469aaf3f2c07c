"""What all requests of the listener share: the ways to the pools, the bounds, and who is in flight."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol

from autoscaler.ports import Clock
from autoscaler.proxy.access_log import AccessLog
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.body import SpoolBudget
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.idempotency import Idempotency
from autoscaler.proxy.known_models import KnownModels
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.request_ids import RequestIds
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.proxy.upstream import Upstream
from autoscaler.telemetry.live_request import LiveRequest

if TYPE_CHECKING:  # so that where nothing is merged, none of what merges is loaded
    from autoscaler.proxy.batch.batching import Batching

LIST_OF_MODELS = "/v1/models"


@dataclass(frozen=True, slots=True)
class Route:
    """The way to one pool."""

    drive: PoolDrive
    options: RouteOptions
    upstream: Upstream
    batching: "Batching | None" = None
    """Merges its requests; None: none is merged."""
    models: KnownModels | None = None
    """Those of its servers; None where they are no language models."""
    substitute: "Route | None" = None
    """The way to the pool that stands in for this one; None if none does."""


def _by_prefix(routes: Sequence[Route]) -> list[tuple[Route, ...]]:
    """Group the ways by their prefix, the longest first; within a group they keep their order."""
    groups: dict[str, list[Route]] = {}
    for route in routes:
        groups.setdefault(route.options.stem, []).append(route)
    return [tuple(groups[stem]) for stem in sorted(groups, key=len, reverse=True)]


class InFlight(Protocol):
    """A request whose answer has not ended."""

    def cut(self) -> None:
        """End it before it is done, because the program ends; its client is told."""

    def live(self, now: float) -> LiveRequest | None:
        """Say where it stands at `now` [s]; None if others say it."""


class Door:
    """Where every request comes in."""

    def __init__(
        self, routes: Sequence[Route], options: ProxyOptions, clock: Clock, gate: TenantGate
    ) -> None:
        self.options = options
        self.clock = clock
        self.gate = gate
        self.budget = SpoolBudget(options.body_spool_bytes_total)
        self.serials = count(1)
        """Ids for the dispatchers: the clients' own need not be unique."""
        self.ids = RequestIds()
        """Ids that are told to clients and servers."""
        self.access_log = AccessLog(options.access_log)
        self.idempotency = Idempotency(options.idempotency)
        self.draining = False
        """While it is set, every answer closes its connection."""
        self._ways = _by_prefix(routes)
        self._of_models = tuple(
            route
            for route in routes
            if route.models is not None
            and (route.options.covers("/v1") or route.options.prefix.startswith("/v1/"))
        )
        self._live: set[InFlight] = set()
        self._nothing_in_flight = asyncio.Event()
        self._nothing_in_flight.set()

    def routes(self, path: str) -> tuple[Route, ...]:
        """Find the pools for `path`, by the longest prefix; if there are several, their models differ.

        Raises `Refused` if there is none.
        """
        for routes in self._ways:
            if routes[0].options.covers(path):
                return routes
        raise Refused(Refusal(404, "no_route", f"No pool is configured for the path {path[:200]!r}."))

    def routes_of_models(self) -> tuple[Route, ...]:
        """Find the pools whose models `/v1/models` lists, in order; none if it leads to a pool without."""
        there = next((routes for routes in self._ways if routes[0].options.covers(LIST_OF_MODELS)), ())
        return () if there and there[0].models is None else self._of_models

    @property
    def in_flight(self) -> int:
        """Requests whose answer has not ended [requests]."""
        return len(self._live)

    def enter(self, request: InFlight) -> None:
        """Count `request` as in flight, until `leave`."""
        self._live.add(request)
        self._nothing_in_flight.clear()

    def leave(self, request: InFlight) -> None:
        """Its answer has ended."""
        self._live.discard(request)
        if not self._live:
            self._nothing_in_flight.set()

    def live(self) -> list[LiveRequest]:
        """Say where each request in flight stands, the oldest first."""
        now = self.clock.now()
        said = [live for request in self._live if (live := request.live(now)) is not None]
        return sorted(said, key=lambda live: -live.age)

    async def wait_until_nothing_is_in_flight(self) -> None:
        """Return when the last answer has ended."""
        await self._nothing_in_flight.wait()

    def cut(self) -> None:
        """End all that is in flight, now."""
        for request in tuple(self._live):
            request.cut()
