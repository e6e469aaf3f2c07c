"""The gRPC listener: start, drain, stop.

Its drain is that of the data listener: deny readiness and keep accepting for a grace, then take no new call,
and wait until the last one is done. What is still there after `drain_max` is ended with a status that its
client can read.
"""

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import grpc

from autoscaler.errors import PortTaken, UsageError
from autoscaler.grpc_credentials import listener_credentials
from autoscaler.ports import Clock
from autoscaler.proxy.access_log import AccessLog, AccessLogOptions
from autoscaler.proxy.grpc.front import Front
from autoscaler.proxy.grpc.handler import Handler
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.grpc.routes import GrpcRoute
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.telemetry.live_request import LiveRequest
from autoscaler.units import Address

_SWEEP_INTERVAL = 1.0
"""How often channels are compared with the replicas that there are [s]."""

_LAST_WORDS = 2.0
"""How long the status of calls that were cut may take to leave [s]."""

_PINGS_APART_MIN = 10.0
"""Clients may ask so often whether we are alive [s]; gRPC's own five minutes would hang up on many."""


class GrpcServer:
    """Listens, and lets every call be handled.

    Parameters
    ----------
    options : GrpcOptions
        Of the listener.
    routes : sequence of GrpcRoute
        The pools that speak gRPC, one at least.
    clock : Clock
        The one that the drives use.
    gate : TenantGate
        Whom it lets in.
    access_log : AccessLog or None
        Where its calls are written, beside those of HTTP; None: nowhere. Closed by whoever made it.
    """

    def __init__(
        self,
        options: GrpcOptions,
        routes: Sequence[GrpcRoute],
        clock: Clock,
        gate: TenantGate,
        access_log: AccessLog | None = None,
    ) -> None:
        self._options = options
        self._routes = tuple(routes)
        self._clock = clock
        self._gate = gate
        self._access_log = access_log or AccessLog(AccessLogOptions())
        self._front: Front | None = None
        self._server: grpc.aio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._port = options.port

    @property
    def port(self) -> int:
        """Where it listens; the one that the system chose if 0 was asked for."""
        return self._port

    @property
    def in_flight(self) -> int:
        """Calls that have not ended [requests]."""
        return 0 if self._front is None else self._front.in_flight

    def live(self) -> list[LiveRequest]:
        """Say where each call in flight stands, the oldest first."""
        return [] if self._front is None else self._front.live()

    def live_calls(self, pool: str) -> Counter[str]:
        """Count the calls with a slot that are under way to the replicas of a pool, by replica id."""
        return Counter() if self._front is None else self._front.live_calls(pool)

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        PortTaken
            If somebody else listens there.
        UsageError
            If the address cannot be listened at, or a certificate cannot be used.
        """
        options = self._options
        credentials = None if options.tls is None else listener_credentials(options.tls)
        front = Front(options, self._routes, self._clock, self._gate, self._access_log)
        _check_address(options)
        server = grpc.aio.server(options=_settings(options))
        server.add_generic_rpc_handlers((Handler(front),))
        address = str(Address(options.host or "::", options.port))  # the library's word for every interface
        try:
            if credentials is None:
                self._port = server.add_insecure_port(address)
            else:
                self._port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise UsageError(f"cannot listen for gRPC at {address}; choose another address") from error
        await server.start()
        self._front, self._server = front, server
        self._sweeper = asyncio.create_task(self._sweep_now_and_then(front))

    async def drain(self) -> None:
        """Let what is in flight end, and nothing new in; return when nothing is in flight any more."""
        if self._front is None or self._server is None:
            return
        self._front.draining = True
        await asyncio.sleep(self._options.drain_grace)
        stopping = asyncio.create_task(self._server.stop(self._options.drain_max + _LAST_WORDS))
        try:
            async with asyncio.timeout(self._options.drain_max):
                await self._front.wait_until_nothing_is_in_flight()
        except TimeoutError:
            await self._cut()
        await stopping

    async def stop(self) -> None:
        """End everything now; after `drain` there is nothing left to end."""
        front, self._front = self._front, None
        if front is None or self._server is None or self._sweeper is None:
            return
        front.draining = True
        front.cut()
        await self._server.stop(_LAST_WORDS)
        self._sweeper.cancel()
        await front.close()

    def __repr__(self) -> str:
        return f"<GrpcServer {self._options.host}:{self.port} in_flight={self.in_flight}>"

    async def _cut(self) -> None:
        """End what is in flight; give the last words of each a moment to leave."""
        if self._front is not None:
            self._front.cut()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._front.wait_until_nothing_is_in_flight()

    async def _sweep_now_and_then(self, front: Front) -> None:
        while True:
            await asyncio.sleep(_SWEEP_INTERVAL)
            await front.forget_gone_replicas()


def _settings(options: GrpcOptions) -> list[tuple[str, int]]:
    limit = -1 if options.message_bytes_max is None else options.message_bytes_max
    return [
        ("grpc.max_receive_message_length", limit),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", int(options.share_port)),
        ("grpc.max_connection_age_ms", int(options.connection_age_max * 1000)),
        ("grpc.keepalive_time_ms", int(options.keepalive * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", int(_PINGS_APART_MIN * 1000)),
    ]


def _check_address(options: GrpcOptions) -> None:
    """Find out why an address cannot be had, which the library does not tell."""
    host, port = options.host, options.port
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if options.share_port:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(where)
            listener.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"port {port} of {host or 'this machine'} is taken; "
                "stop what listens there, or set another `grpc.listen`"
            ) from error
        raise UsageError(
            f"cannot listen for gRPC at {host or 'every interface'}, port {port}: {error.strerror or error}; "
            "set a host of this machine and a port that this user may use"
        ) from error
