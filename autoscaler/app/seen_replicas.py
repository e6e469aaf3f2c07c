"""What a controller knows of replicas that it sends nothing to: from the platform, and from their doors."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from statistics import median_low
from urllib.parse import urlsplit

from autoscaler.domain import Fleet
from autoscaler.ports import Platform, Replica, ReplicaListener
from autoscaler.scaling.doors import Doors


class SeenReplicas:
    """What a platform tells of replicas, remembered; a `ports.ReplicaListener`.

    Parameters
    ----------
    doors : Doors
        Say how many slots are in use behind each; a door and its replica are on one host.
    """

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._urls: dict[str, str] = {}
        self._draining: set[str] = set()

    @property
    def ready(self) -> int:
        """Replicas that take requests [1]."""
        return len(self._urls) - len(self._draining)

    def replica_ready(self, replica: Replica) -> None:
        """It takes requests from now on."""
        self._urls[replica.id] = replica.url
        self._draining.discard(replica.id)

    def replica_draining(self, replica_id: str) -> None:
        """It gets nothing new from now on."""
        if replica_id in self._urls:
            self._draining.add(replica_id)

    def replica_lost(self, replica_id: str) -> None:
        """It is gone."""
        self._urls.pop(replica_id, None)
        self._draining.discard(replica_id)

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        """Do nothing: it is not sent anything from here."""

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id."""
        busy: dict[str, int] = {}
        for address, count in self._doors.busy().items():
            busy[_host(address)] = busy.get(_host(address), 0) + count
        return {key: busy[_host(url)] for key, url in self._urls.items() if busy.get(_host(url))}


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

    async def stop(self) -> None:
        """Stop the platform."""
        await self._platform.stop()


def _host(url: str) -> str:
    with suppress(ValueError):
        return urlsplit(url).hostname or ""
    return ""
