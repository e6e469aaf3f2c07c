"""The data listener: start, drain, stop.

A drain goes by what is in flight, not by the clock: say not ready and keep accepting for a grace, so that
nobody new is sent here; then close the door, and wait until the last request is done. What is still there
after `drain_max` is ended with an error that its client can read.
"""

import asyncio
import errno
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from autoscaler.errors import PortTaken, UsageError
from autoscaler.ports import Clock
from autoscaler.proxy.connection import Server, require_c_parser
from autoscaler.proxy.door import Door, Route
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.handler import Handler
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.upstream import Upstream

_BACKLOG = 1024
"""Connections that the kernel holds for us while we are busy [1]."""

_RECONCILE_INTERVAL = 5.0
"""How often the ledger is compared with what lives [s]."""

_LAST_WORDS = 2.0
"""How long answers that were cut may take to leave [s]."""


@dataclass(frozen=True, slots=True)
class PoolRoute:
    """One pool behind the listener."""

    drive: PoolDrive
    options: RouteOptions


class ProxyServer:
    """Listens, and lets every request be handled.

    Parameters
    ----------
    options : ProxyOptions
        Of the listener.
    pools : sequence of PoolRoute
        Their prefixes differ.
    clock : Clock
        The one that the drives use.
    """

    def __init__(self, options: ProxyOptions, pools: Sequence[PoolRoute], clock: Clock) -> None:
        prefixes = [pool.options.prefix for pool in pools]
        if len(set(prefixes)) < len(prefixes):
            raise ValueError(f"need a prefix of its own for each pool, got {prefixes}")
        self._options = options
        self._pools = tuple(pools)
        self._clock = clock
        self._port = options.port
        self._upstreams: list[Upstream] = []
        self._door: Door | None = None
        self._server: Server | None = None
        self._listener: asyncio.Server | None = None
        self._reconciler: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether new requests are welcome."""
        return self._door is not None and not self._door.draining

    @property
    def in_flight(self) -> int:
        """Requests whose answer has not ended [requests]."""
        return 0 if self._door is None else self._door.in_flight

    @property
    def port(self) -> int:
        """Where it listens; the one that the system chose if 0 was asked for."""
        return self._port

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        PortTaken
            If somebody else listens there.
        UsageError
            If the address cannot be listened at, or aiohttp lacks its C parser.
        """
        require_c_parser()
        self._upstreams = [Upstream(self._options, pool.options) for pool in self._pools]
        routes = [
            Route(pool.drive, pool.options, upstream)
            for pool, upstream in zip(self._pools, self._upstreams, strict=True)
        ]
        self._door = Door(routes, self._options, self._clock)
        self._server = Server(Handler(self._door), self._options)
        try:
            self._listener = await self._listen(self._server)
        except BaseException:
            self._door = self._server = None
            await self._close_upstreams()
            raise
        self._port = self._listener.sockets[0].getsockname()[1]
        self._reconciler = asyncio.create_task(self._reconcile_now_and_then())

    async def drain(self) -> None:
        """Let what is in flight end, and nothing new in; return when nothing is in flight any more."""
        if self._door is None or self._server is None or self._listener is None:
            return
        self._door.draining = True
        await asyncio.sleep(self._options.drain_grace)
        self._listener.close()
        for pool in self._pools:
            pool.drive.close()
        self._server.close_idle()
        try:
            async with asyncio.timeout(self._options.drain_max):
                await self._door.wait_until_nothing_is_in_flight()
        except TimeoutError:
            await self._cut()

    async def stop(self) -> None:
        """End everything now; after `drain` there is nothing left to end."""
        if self._door is None or self._server is None or self._listener is None:
            return
        self._door.draining = True
        self._listener.close()
        await self._cut()
        await self._server.shutdown(timeout=_LAST_WORDS)
        if self._reconciler is not None:
            self._reconciler.cancel()
        await self._close_upstreams()
        self._door = None

    def __repr__(self) -> str:
        state = "ready" if self.ready else "not ready"
        return f"<ProxyServer {self._options.host}:{self.port} {state} in_flight={self.in_flight}>"

    async def _listen(self, server: Server) -> asyncio.Server:
        host, port = self._options.host, self._options.port
        try:
            return await asyncio.get_running_loop().create_server(server, host, port, backlog=_BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(
                    f"port {port} of {host} is taken; stop what listens there, or give the proxy another port"
                ) from error
            raise UsageError(
                f"cannot listen at {host}, port {port}: {error.strerror or error}; "
                "set a host of this machine and a port that this user may use"
            ) from error

    async def _cut(self) -> None:
        """End what is in flight; give the last words of each a moment to leave."""
        if self._door is not None:
            self._door.cut()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._door.wait_until_nothing_is_in_flight()

    async def _reconcile_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_RECONCILE_INTERVAL)
            for pool in self._pools:
                pool.drive.reconcile()

    async def _close_upstreams(self) -> None:
        for upstream in self._upstreams:
            await upstream.close()
        self._upstreams = []
