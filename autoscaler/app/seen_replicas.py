"""What a controller knows of replicas that it sends nothing to: from the platform, and from their doors."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from statistics import median_low
from urllib.parse import urlsplit

from autoscaler.domain import Fleet
from autoscaler.ports import ActsLater, LooksAnew, Platform, Replica, ReplicaListener, StandsBy
from autoscaler.scaling.doors import Doors


class SeenReplicas:
    """What a platform tells of replicas, remembered; a `ports.ReplicaListener`.

    Parameters
    ----------
    busy : callable
        Slots in use by replica id [1], of those given by id.
    """

    def __init__(self, busy: Callable[[Mapping[str, Replica]], Mapping[str, int]]) -> None:
        self._busy = busy
        self._replicas: dict[str, Replica] = {}
        self._draining: set[str] = set()

    @property
    def ready(self) -> int:
        """Replicas that take requests [1]."""
        return len(self._replicas) - len(self._draining)

    def shared(self) -> dict[str, Replica]:
        """Return every replica by id; those that drain have no slots."""
        return {
            key: replace(each, slots=0) if key in self._draining else each
            for key, each in self._replicas.items()
        }

    def replica_ready(self, replica: Replica) -> None:
        """It takes requests from now on."""
        self._replicas[replica.id] = replica
        self._draining.discard(replica.id)

    def replica_draining(self, replica_id: str) -> None:
        """It gets nothing new from now on."""
        if replica_id in self._replicas:
            self._draining.add(replica_id)

    def replica_lost(self, replica_id: str) -> None:
        """It is gone."""
        self._replicas.pop(replica_id, None)
        self._draining.discard(replica_id)

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        """Do nothing: it is not sent anything from here."""

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id."""
        return self._busy(self._replicas)


def busy_beside(doors: Doors, replicas: Mapping[str, Replica]) -> dict[str, int]:
    """Return the slots in use by replica id [1], where a door and its replica are on one host."""
    busy: dict[str, int] = {}
    for address, count in doors.busy().items():
        busy[_host(address)] = busy.get(_host(address), 0) + count
    return {key: busy[_host(each.url)] for key, each in replicas.items() if busy.get(_host(each.url))}


class ToldSlots:
    """A platform whose replicas have as many slots as their doors tell, where nobody has set them."""

    def __init__(self, platform: Platform, doors: Doors) -> None:
        self._platform, self._doors = platform, doors

    async def start(self, listener: ReplicaListener) -> None:
        """Start the platform."""
        await self._platform.start(listener)

    async def fleet(self) -> Fleet:
        """Return the fleet of the platform, with the slots that a typical door has."""
        fleet, told = await self._platform.fleet(), self._doors.slots()
        return replace(fleet, slots_per_replica=median_low(told)) if told else fleet

    async def scale_to(self, replicas: int) -> None:
        """Ask the platform."""
        await self._platform.scale_to(replicas)

    async def look_anew(self) -> None:
        """Have the platform look anew, if what it says may be old."""
        if isinstance(self._platform, LooksAnew):
            await self._platform.look_anew()

    def act_while(self, may_act: Callable[[], bool]) -> None:
        """Have the platform ask, if it acts some time after."""
        if isinstance(self._platform, ActsLater):
            self._platform.act_while(may_act)

    def stand_by(self) -> None:
        """Let the platform do no more, if it does anything by itself."""
        if isinstance(self._platform, StandsBy):
            self._platform.stand_by()

    async def stop(self) -> None:
        """Stop the platform."""
        await self._platform.stop()


def _host(url: str) -> str:
    with suppress(ValueError):
        return urlsplit(url).hostname or ""
    return ""
