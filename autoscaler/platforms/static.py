"""Servers that somebody else runs, given as a list: probed and served, never started or stopped.

Nothing can be actuated here, so the controller's wish is only remembered, as a recommendation. A server
counts as soon as one probe succeeds, and is given up only after several failed in a row: to send
requests nowhere for a while costs more than to send a few to a server that just went away.
"""

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog

from autoscaler.domain import Fleet
from autoscaler.ports import ModelServer, Replica, ReplicaListener

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """The servers, and how they are watched."""

    urls: tuple[str, ...]
    """Base URL of each server; each is one replica."""
    slots_per_replica: int = 1
    """Requests one server takes at a time [1]; raise it to what the server does well with at once."""
    probe_interval: float = 5.0
    """Pause between two probes of one server [s]."""
    probe_failures: int = 3
    """A ready server is lost after so many failed probes in a row [1]; more is calmer, and later."""
    cold_start_initial: float = 60.0
    """What a start would take [s]; none is made here to be measured. Recommendations look so far ahead."""
    grpc_targets: tuple[str, ...] = ()
    """gRPC port of each server as `host:port`, in the order of `urls`; empty if they have none."""

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("urls is empty; name at least one server, such as http://127.0.0.1:9001")
        for url in self.urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
                raise ValueError(f"urls: {url!r} is no base URL; write it as http://HOST:PORT")
        bases = [url.rstrip("/") for url in self.urls]
        if twice := sorted({url for url in bases if bases.count(url) > 1}):
            raise ValueError(f"urls: {twice[0]!r} is listed twice; each server is one replica")
        if self.grpc_targets and len(self.grpc_targets) != len(self.urls):
            raise ValueError(
                f"need a gRPC target for each of {len(self.urls)} urls, got {len(self.grpc_targets)}"
            )
        if self.slots_per_replica < 1 or self.probe_failures < 1:
            raise ValueError(
                f"need slots_per_replica, probe_failures >= 1, "
                f"got {self.slots_per_replica}, {self.probe_failures}"
            )
        if self.probe_interval <= 0 or self.cold_start_initial <= 0:
            raise ValueError(
                f"need probe_interval, cold_start_initial > 0 s, "
                f"got {self.probe_interval}, {self.cold_start_initial}"
            )


class Static:
    """A fixed list of servers; recommends only."""

    def __init__(self, options: StaticOptions, server: ModelServer) -> None:
        self._options = options
        self._server = server
        urls = [given.rstrip("/") for given in options.urls]
        self._replicas = [
            Replica(id=url, url=url, slots=options.slots_per_replica, grpc_target=target)
            for url, target in zip(urls, options.grpc_targets or [None] * len(urls), strict=True)
        ]
        self._failures = dict.fromkeys((replica.id for replica in self._replicas), options.probe_failures)
        self._recommended: int | None = None
        self._watches: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Static ready={self._ready}/{len(self._replicas)} recommended={self._recommended}>"

    @property
    def recommended(self) -> int | None:
        """The number of replicas the controller last asked for [1]; None before it did."""
        return self._recommended

    async def start(self, listener: ReplicaListener) -> None:
        """Probe every server once, at the same time, then watch each until `stop`."""
        await asyncio.gather(*(self._probe(replica, listener) for replica in self._replicas))
        self._watches = [asyncio.create_task(self._watch(replica, listener)) for replica in self._replicas]

    async def fleet(self) -> Fleet:
        """Ready are those that answer; the others are nobody's order, so they are not starting."""
        return Fleet(
            ready=self._ready,
            starting=0,
            draining=0,
            slots_per_replica=self._options.slots_per_replica,
            cold_start_mean=self._options.cold_start_initial,
            cold_start_p90=self._options.cold_start_initial,
        )

    async def scale_to(self, replicas: int) -> None:
        """Remember `replicas` as the recommendation; nobody is started or stopped."""
        self._recommended = replicas

    async def stop(self) -> None:
        """End the watching; the servers run on."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    @property
    def _ready(self) -> int:
        return sum(failures < self._options.probe_failures for failures in self._failures.values())

    async def _watch(self, replica: Replica, listener: ReplicaListener) -> None:
        while True:
            await asyncio.sleep(self._options.probe_interval)
            await self._probe(replica, listener)

    async def _probe(self, replica: Replica, listener: ReplicaListener) -> None:
        """Ask once; tell the listener what came of it, of a server that is ready or becomes so."""
        answers = await self._server.ready(replica.url)
        before, limit = self._failures[replica.id], self._options.probe_failures
        self._failures[replica.id] = 0 if answers else min(before + 1, limit)
        if answers and before == limit:
            log.info("server is ready", url=replica.url)
            listener.replica_ready(replica)
        elif not answers and before == limit - 1:
            log.warning("server is lost", url=replica.url, failed_probes=limit)
            listener.replica_lost(replica.id)
        elif before < limit:
            listener.replica_probed(replica.id, answers)
