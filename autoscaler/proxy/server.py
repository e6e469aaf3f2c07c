"""The data listener: start, drain, stop.

A drain goes by what is in flight, not by the clock: say not ready and keep accepting for a grace, so that
nobody new is sent here; then close the door, and wait until the last request is done. What is still there
after `drain_max` is ended with an error that its client can read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from autoscaler.ports import Clock
from autoscaler.proxy.access_log import AccessLog
from autoscaler.proxy.connection import Server, require_c_parser
from autoscaler.proxy.descriptors import raise_limit
from autoscaler.proxy.door import Door, Route
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.handler import Handler
from autoscaler.proxy.known_models import KnownModels
from autoscaler.proxy.listener import Listener
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.tenants.gate import TenantGate, open_gate
from autoscaler.proxy.upstream import Upstream
from autoscaler.telemetry.live_request import LiveRequest
from autoscaler.tls import server_context, watch
from autoscaler.watched_files import WatchedFiles

if TYPE_CHECKING:  # so that where nothing is merged, none of what merges is loaded
    from autoscaler.proxy.batch.batching import Batching

_LAST_COMERS, _LAST_COMERS_LOOKS = 0.5, 25
"""Who connected just before the door closed may send a request for so long [s]; looked at so often [1]."""

_RECONCILE_INTERVAL = 5.0
"""How often the ledger is compared with what lives [s]."""

_LAST_WORDS = 2.0
"""How long answers that were cut may take to leave [s]."""


CallsElsewhere = Callable[[str], Mapping[str, int]]
"""Counts the calls of another listener to the replicas of a pool, by replica id."""


def _none(pool: str) -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True)
class PoolRoute:
    """One pool behind the listener."""

    drive: PoolDrive
    options: RouteOptions
    models: KnownModels | None = None
    """Those of its servers; None where they are no language models."""
    batching: "Batching | None" = None
    """Merges its requests; None: none is merged."""


class ProxyServer:
    """Listens, and lets every request be handled.

    Parameters
    ----------
    options : ProxyOptions
        Of the listener.
    pools : sequence of PoolRoute
        Their prefixes differ; those of language models may have the same one.
    clock : Clock
        The one that the drives use.
    gate : TenantGate or None
        Whom it lets in; None: everybody.
    calls_elsewhere : callable
        Calls that hold slots of the same pools and do not come through here.
    """

    def __init__(
        self,
        options: ProxyOptions,
        pools: Sequence[PoolRoute],
        clock: Clock,
        gate: TenantGate | None = None,
        calls_elsewhere: CallsElsewhere = _none,
    ) -> None:
        prefixes = Counter(pool.options.stem for pool in pools)
        if any(prefixes[pool.options.stem] > 1 and pool.models is None for pool in pools):
            raise ValueError(f"need a prefix of its own for each pool without models, got {list(prefixes)}")
        self._options = options
        self._pools = tuple(pools)
        self._clock = clock
        self._gate = gate or open_gate(clock)
        self._calls_elsewhere = calls_elsewhere
        self._upstreams: list[Upstream] = []
        self._certificates: list[WatchedFiles] = []
        self._door: Door | None = None
        self._server: Server | None = None
        self._listener = Listener(shared=options.share_port)
        self._reconciler: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether new requests are welcome."""
        return self._door is not None and not self._door.draining

    @property
    def in_flight(self) -> int:
        """Requests whose answer has not ended [requests]."""
        return 0 if self._door is None else self._door.in_flight

    def live(self) -> list[LiveRequest]:
        """Say where each request in flight stands, the oldest first."""
        return [] if self._door is None else self._door.live()

    @property
    def access_log(self) -> AccessLog | None:
        """What is written of its requests, while it runs; others may write there too."""
        return None if self._door is None else self._door.access_log

    @property
    def port(self) -> int:
        """Where it listens; the one that the system chose if 0 was asked for."""
        return self._listener.port or self._options.port

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        PortTaken
            If somebody else listens there.
        UsageError
            If the address cannot be listened at, a certificate cannot be used, or aiohttp lacks its C parser.
        """
        require_c_parser()
        raise_limit()
        tls = self._options.tls
        context = None if tls is None else server_context(tls)
        self._upstreams = [Upstream(self._options, pool.options) for pool in self._pools]
        routes = _with_substitutes(
            [
                Route(pool.drive, pool.options, upstream, pool.batching, pool.models)
                for pool, upstream in zip(self._pools, self._upstreams, strict=True)
            ]
        )
        for route in routes:
            if route.batching is not None:
                route.batching.use(route.drive, route.upstream)
        options = self._options
        try:
            door = Door(routes, options, self._clock, self._gate)
            self._server = Server(Handler(door), options)
            await self._listener.open(self._server, options.host, options.port, context)
        except BaseException:
            self._server = None
            await self._close_upstreams()
            raise
        self._door = door
        self._certificates = [watch(tls, context), *(each.certificates for each in self._upstreams)]
        self._reconciler = asyncio.create_task(self._reconcile_now_and_then())

    async def drain(self) -> None:
        """Let what is in flight end, and nothing new in; return when nothing is in flight any more."""
        if self._door is None or self._server is None:
            return
        self._door.draining = True
        await asyncio.sleep(self._options.drain_grace)
        server = self._server
        await self._listener.hand_over(lambda: server.accepted)
        await self._serve_last_comers()
        for pool in self._pools:
            pool.drive.close()
        try:
            async with asyncio.timeout(self._options.drain_max):
                await self._door.wait_until_nothing_is_in_flight()
        except TimeoutError:
            await self._cut()

    async def stop(self) -> None:
        """End everything now; after `drain` there is nothing left to end."""
        if self._door is None or self._server is None:
            return
        self._door.draining = True
        self._listener.close()
        await self._cut()
        await self._server.shutdown(timeout=_LAST_WORDS)
        if self._reconciler is not None:
            self._reconciler.cancel()
        await self._close_upstreams()
        self._door.access_log.close()
        self._door = None

    def __repr__(self) -> str:
        state = "ready" if self.ready else "not ready"
        return f"<ProxyServer {self._options.host}:{self.port} {state} in_flight={self.in_flight}>"

    async def _serve_last_comers(self) -> None:
        """Serve one request of each connection that has had none yet; close all that idle."""
        if self._server is None:
            return
        self._server.close_idle(served=True)
        for _ in range(_LAST_COMERS_LOOKS):
            if not self._server.close_idle(served=True):
                break
            await asyncio.sleep(_LAST_COMERS / _LAST_COMERS_LOOKS)
        self._server.close_idle()

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
            self.reconcile()
            for files in self._certificates:
                files.look()

    def reconcile(self) -> None:
        """Compare every ledger of slots with the calls that are under way; mend, and note, what differs."""
        for pool, upstream in zip(self._pools, self._upstreams, strict=True):
            elsewhere = Counter(self._calls_elsewhere(pool.drive.name))
            pool.drive.reconcile(upstream.live_calls() + elsewhere)

    async def _close_upstreams(self) -> None:
        for upstream in self._upstreams:
            await upstream.close()
        self._upstreams = []


def _with_substitutes(routes: Sequence[Route]) -> list[Route]:
    """Let each way know that to the pool which stands in for its own."""
    to = {route.drive.name: route for route in routes}
    return [
        route
        if route.drive.substitute is None
        else replace(route, substitute=to[route.drive.substitute.name])
        for route in routes
    ]
