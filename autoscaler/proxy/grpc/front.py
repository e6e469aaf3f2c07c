"""What all calls of the listener share: pools, channels, who is in flight, whether it ends."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Protocol

from autoscaler.ports import Clock
from autoscaler.proxy.grpc.channels import Channels
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.grpc.routes import GrpcRoute, Routes
from autoscaler.proxy.tenants.gate import TenantGate


class InFlight(Protocol):
    """A call that has not ended."""

    def cut(self) -> None:
        """End it before it is done, because the program ends; its client is told."""


class Front:
    """Where every call comes in. Raises UsageError if the files of a pool's TLS cannot be used."""

    def __init__(
        self, options: GrpcOptions, routes: Sequence[GrpcRoute], clock: Clock, gate: TenantGate
    ) -> None:
        self.options = options
        self.routes = Routes(routes)
        self.clock = clock
        self.gate = gate
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

    def new_id(self) -> str:
        """Return an id that no request of either listener has."""
        return f"grpc-{next(self._serials)}"

    @property
    def in_flight(self) -> int:
        """Calls that have not ended [requests]."""
        return len(self._live)

    @contextmanager
    def entered(self, call: InFlight) -> Iterator[None]:
        """Count `call` as in flight."""
        self._live.add(call)
        self._nothing_in_flight.clear()
        try:
            yield
        finally:
            self._live.discard(call)
            if not self._live:
                self._nothing_in_flight.set()

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
