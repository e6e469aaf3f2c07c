"""The replicas of a proxy that shares them with other proxies: a controller tells which, and how many slots.

A replica is offered to the request path with its share once it answers to this proxy, too; also with a share
of 0, for it can be asked what takes no slot, and what is known of its health stays. A share that is lowered
takes nothing from requests that run: they finish, and nothing new starts until there are fewer than the
share. A replica that the request path has ejected does not answer to this proxy: others may do well with it,
and this one needs slots elsewhere. While no controller is heard of, all goes on with what was told last;
before the first word there is no replica, and the proxy is not ready.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Protocol

import structlog

from autoscaler.ports import Clock, ModelServer, Replica, ReplicaListener
from autoscaler.remote_fleet import Member, RemoteFleetOptions
from autoscaler.remote_fleet.roster import Roster
from autoscaler.sharing.message import ReplicaHeld, SharesHeld, SharesTold

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ToldOptions:
    """How replicas that a controller tells of are watched."""

    probe_interval: float = 5.0
    """Pause between two probes of a ready replica [s]."""
    probe_failures: int = 3
    """A ready replica is lost after so many failed probes in a row [1]; more is calmer, and later."""

    def __post_init__(self) -> None:
        _ = self.roster  # whose options say what is wrong

    @property
    def roster(self) -> RemoteFleetOptions:
        """Return how the roster watches."""
        return RemoteFleetOptions(
            Path(), probe_interval=self.probe_interval, probe_failures=self.probe_failures
        )


class RequestPath(ReplicaListener, Protocol):
    """Who sends requests to the replicas."""

    @property
    def waiting(self) -> int:
        """Requests in the queue [1]."""

    @property
    def closing(self) -> bool:
        """Whether nothing new is let in any more."""

    @property
    def ejected(self) -> Collection[str]:
        """Ids of ready replicas that get no requests for a while, because they failed."""


class ToldFleet:
    """Does what controllers tell, one after the other; a `ports.ReplicaListener` of its own roster.

    Parameters
    ----------
    options : ToldOptions
        How replicas are watched.
    server : ModelServer
        How one is asked whether it can serve.
    clock : Clock
        The time.
    path : RequestPath
        Told which replicas take requests, from `start` on.
    """

    def __init__(self, options: ToldOptions, server: ModelServer, clock: Clock, path: RequestPath) -> None:
        self._path = path
        self._roster = Roster(options.roster, server, clock, came=lambda: None)
        self._told: SharesTold | None = None
        self._ready: dict[str, Replica] = {}
        self._incarnation, self._orders = token_hex(8), 0

    def __repr__(self) -> str:
        return f"<ToldFleet told={self.told} ready={len(self._ready)}>"

    @property
    def told(self) -> int | None:
        """Return how many replicas there are [1]; None if no controller has said so yet."""
        return None if self._told is None else len(self._told.replicas)

    @property
    def trouble(self) -> str | None:
        """Return why requests would wait in vain; None if they would not, also while there is no replica."""
        if self._told is None:
            return "no controller has told its replicas yet"
        if self._told.replicas and not self._ready:
            return f"none of its {len(self._told.replicas)} replicas answers"
        return None

    @property
    def urls(self) -> list[str]:
        """Base URL of each replica that was told of."""
        return [] if self._told is None else [each.url for each in self._told.replicas.values()]

    @property
    def tag(self) -> str:
        """Return what names the state; another one after each order, and in another process."""
        return f"{self._incarnation}-{self._orders}"

    async def start(self, listener: ReplicaListener) -> None:
        """Report to the request path which replicas take requests, until `stop`."""
        self._roster.start(self)

    async def stop(self) -> None:
        """End the watching; the replicas run on."""
        await self._roster.stop()

    def tell(self, told: SharesTold) -> None:
        """Do as a controller says."""
        before, self._told = self._told, told
        self._orders += 1
        if before is None:
            log.info("a controller tells of replicas", replicas=len(told.replicas))
        self._roster.told(
            Member(replica_id, each.url.rstrip("/"), each.grpc_target)
            for replica_id, each in told.replicas.items()
        )
        for replica_id, replica in self._ready.items():
            share = told.replicas[replica_id].share
            if share != replica.slots:
                self._offer(replica, share)

    def held(self) -> SharesHeld:
        """Return what this proxy has, uses and wants."""
        told, busy, ejected = self._told or SharesTold(), self.busy_slots(), self._path.ejected
        return SharesHeld(
            is_told=self._told is not None,
            waiting=self._path.waiting,
            is_leaving=self._path.closing,
            replicas={
                replica_id: ReplicaHeld(
                    each.url,
                    each.share,
                    busy.get(replica_id, 0),
                    replica_id in self._ready and replica_id not in ejected,
                    each.grpc_target,
                )
                for replica_id, each in told.replicas.items()
            },
            gone={
                replica_id: count
                for replica_id, count in busy.items()
                if count and replica_id not in told.replicas
            },
        )

    # -- ports.ReplicaListener

    def replica_ready(self, replica: Replica) -> None:
        """It answers: offer the share of it."""
        self._offer(replica, self._share(replica.id))

    def replica_draining(self, replica_id: str) -> None:
        """Pass it on."""
        self._path.replica_draining(replica_id)

    def replica_lost(self, replica_id: str) -> None:
        """Pass it on."""
        self._ready.pop(replica_id, None)
        self._path.replica_lost(replica_id)

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        """Pass it on."""
        self._path.replica_probed(replica_id, ok)

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id."""
        return self._path.busy_slots()

    def _share(self, replica_id: str) -> int:
        each = None if self._told is None else self._told.replicas.get(replica_id)
        return 0 if each is None else each.share

    def _offer(self, replica: Replica, share: int) -> None:
        """Offer so many slots of a replica that answers."""
        self._ready[replica.id] = offered = replace(replica, slots=share)
        self._path.replica_ready(offered)
