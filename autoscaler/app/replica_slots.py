"""The slots of replicas where nobody has set them: asked of each server, then learned, told to both paths.

It stands between a platform, which reports replicas, and those who are told: the request path hears of a
replica once its server was asked how many requests it takes at a time; the control path gets a fleet whose
replicas have as many slots as a typical one has learned.

    platform ──replica is ready──▶ ReplicaSlots ──how many at a time?──▶ server
        ▲                              │ with that many, or to be learned
        └─────────── fleet ────────────┴──▶ request path

A server that tells a number has that many, or, where an objective is set, learns how many of them keep it.
One that tells none begins with what was learned before, by others or in an earlier run of this program, else
with one. What the control path is told moves in steps of at least `STEP_MIN`, so that a slot more or less is
not taken for a change of the fleet.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import structlog

from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.domain import Fleet
from autoscaler.kept_file import keep
from autoscaler.ports import ModelServer, Platform, Replica, ReplicaListener
from autoscaler.proxy.drive import PoolDrive

STEP_MIN = 0.1
"""The control path is told of other slots if they differ by this share [1]."""

log = structlog.get_logger(__name__)


class ReplicaSlots:
    """A platform whose replicas have slots that are found out; a `ports.Platform`, and a `ReplicaListener`.

    Parameters
    ----------
    platform : Platform
        Where the replicas live.
    server : ModelServer
        How one is asked.
    drive : PoolDrive
        The request path, which is told of replicas, and learns.
    options : SlotOptions
        What learned slots shall keep.
    path : Path
        Where the number is kept for the next start.
    """

    def __init__(
        self, platform: Platform, server: ModelServer, drive: PoolDrive, options: SlotOptions, path: Path
    ) -> None:
        self._platform, self._server, self._drive = platform, server, drive
        self._options, self._path = options, path
        self._per_replica = _read(path, options.slots_max)
        self._listener: ReplicaListener = drive
        self._known: dict[str, Replica] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    @property
    def per_replica(self) -> int:
        """Slots of a typical replica, as the control path is told [1]; calls, where requests are merged."""
        found = None if self._drive.rows_per_call else self._drive.slots_learned
        if found is not None and abs(found - self._per_replica) >= max(1.0, STEP_MIN * self._per_replica):
            self._now_have(found)
        return self._per_replica

    # -- ports.Platform

    async def start(self, listener: ReplicaListener) -> None:
        """Start the platform; `listener` hears of a replica once its server was asked."""
        self._listener = listener
        await self._platform.start(self)
        await asyncio.gather(*self._asking.values(), return_exceptions=True)  # some may be lost meanwhile

    async def fleet(self) -> Fleet:
        """Return the fleet of the platform, with the slots that its replicas have."""
        return replace(await self._platform.fleet(), slots_per_replica=self.per_replica)

    async def scale_to(self, replicas: int) -> None:
        """Ask the platform."""
        await self._platform.scale_to(replicas)

    async def stop(self) -> None:
        """Stop the platform; nobody is asked any more."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._platform.stop()

    # -- ports.ReplicaListener

    def replica_ready(self, replica: Replica) -> None:
        """Ask its server, unless that was done already."""
        known = self._known.get(replica.id)
        if known is not None:
            self._listener.replica_ready(known)
        elif replica.id not in self._asking:
            task = asyncio.create_task(self._ask(replica), name=f"slots of {replica.id}")
            self._asking[replica.id] = task

    def replica_draining(self, replica_id: str) -> None:
        """Pass it on; one that is being asked is not told of any more."""
        if not self._was_asked(replica_id):
            self._listener.replica_draining(replica_id)

    def replica_lost(self, replica_id: str) -> None:
        """Pass it on, and ask anew should it come back: it may be another server."""
        self._known.pop(replica_id, None)
        if not self._was_asked(replica_id):
            self._listener.replica_lost(replica_id)

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        """Pass it on."""
        self._listener.replica_probed(replica_id, ok)

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id."""
        return self._listener.busy_slots()

    def _was_asked(self, replica_id: str) -> bool:
        """Ask no more, because nobody needs the answer; return whether it was being asked."""
        task = self._asking.pop(replica_id, None)
        if task is not None:
            task.cancel()
        return task is not None

    async def _ask(self, replica: Replica) -> None:
        told = await self._server.slots(replica.url)
        del self._asking[replica.id]
        first = self._per_replica if told is None else told
        most = self._options.slots_max if told is None else told
        if told is not None:
            self._now_have(told)
        if told is not None and not self._options.has_objective:
            found = replace(replica, slots=told)
        else:
            found = replace(replica, slots=most, learns_from=min(first, most))
        log.info("slots of a replica", replica=replica.id, told=told, begins_with=min(first, most))
        self._known[replica.id] = found
        self._listener.replica_ready(found)

    def _now_have(self, slots: int) -> None:
        if slots != self._per_replica:
            self._per_replica = slots
            keep(self._path, msgspec.json.encode(slots))


def _read(path: Path, slots_max: int) -> int:
    """Return what an earlier run found; 1 if there was none, or it cannot be read."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=int)
    except FileNotFoundError:
        return 1
    except (OSError, msgspec.DecodeError) as error:
        log.warning("learned slots cannot be read; learning anew", path=str(path), error=str(error))
        return 1
    return max(1, min(kept, slots_max))
