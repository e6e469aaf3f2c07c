"""What all calls of the listener share: pools, channels, who is in flight, whether it ends."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from autoscaler.ports import Clock
from autoscaler.proxy.access_log import AccessLog
from autoscaler.proxy.grpc.channels import Channels
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.grpc.routes import GrpcRoute, Routes
from autoscaler.proxy.request_ids import RequestIds
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.telemetry.live_request import LiveRequest


class InFlight(Protocol):
    """A call that has not ended."""

    def cut(self) -> None:
        """End it before it is done, because the program ends; its client is told."""

    def live(self, now: float) -> LiveRequest:
        """Say where it stands at `now` [s]."""


class Front:
    """Where every call comes in. Raises UsageError if the files of a pool's TLS cannot be used."""

    def __init__(
        self,
        options: GrpcOptions,
        routes: Sequence[GrpcRoute],
        clock: Clock,
        gate: TenantGate,
        access_log: AccessLog,
    ) -> None:
        self.options = options
        self.routes = Routes(routes)
        self.clock = clock
        self.gate = gate
        self.access_log = access_log
        self.ids = RequestIds()
        self.draining = False
        """While it is set, readiness is denied; calls are still served."""
        self._channels = {route.drive.name: Channels(options, route.tls) for route in routes}
        self._serials = count(1)
        self._live: set[InFlight] = set()
        self._nothing_in_flight = asyncio.Event()
        self._nothing_in_flight.set()

    def channels(self, route: GrpcRoute) -> Channels:
        """Return the channels of a pool."""
        return self._channels[route.drive.name]

    def new_serial(self) -> str:
        """Return an id for the dispatchers that no request of either listener has."""
        return f"grpc-{next(self._serials)}"

    @property
    def in_flight(self) -> int:
        """Calls that have not ended [requests]."""
        return len(self._live)

    def enter(self, call: InFlight) -> None:
        """Count `call` as in flight, until `leave`."""
        self._live.add(call)
        self._nothing_in_flight.clear()

    def leave(self, call: InFlight) -> None:
        """It has ended."""
        self._live.discard(call)
        if not self._live:
            self._nothing_in_flight.set()

    def live(self) -> list[LiveRequest]:
        """Say where each call in flight stands, the oldest first."""
        now = self.clock.now()
        return sorted((call.live(now) for call in self._live), key=lambda live: -live.age)

    def live_calls(self, pool: str) -> Counter[str]:
        """Count the calls with a slot that are under way to the replicas of a pool, by replica id."""
        channels = self._channels.get(pool)
        return Counter() if channels is None else channels.live_calls()

    async def wait_until_nothing_is_in_flight(self) -> None:
        """Return when the last call has ended."""
        await self._nothing_in_flight.wait()

    def cut(self) -> None:
        """End all that is in flight, now."""
        for call in tuple(self._live):
            call.cut()

    async def forget_gone_replicas(self) -> None:
        """Close the channels of replicas that the ledgers have forgotten."""
        for route in self.routes.all:
            known = {replica.id for replica in route.drive.snapshot().replicas}
            await self.channels(route).keep_only(known)

    async def close(self) -> None:
        """Close every channel."""
        for channels in self._channels.values():
            await channels.close()
