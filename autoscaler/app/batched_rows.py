"""The slots of replicas that serve requests in batches, as the control path has them: rows, not calls.

A replica that takes two calls of 32 rows has 64 slots, on both paths: so utilization says how full batches
are, and the load of requests with several rows counts by rows.
"""

from dataclasses import replace

from autoscaler.domain import Fleet
from autoscaler.ports import Platform, ReplicaListener
from autoscaler.proxy.drive import PoolDrive


class BatchedRows:
    """A platform whose replicas have a slot for each row of their calls; a `ports.Platform`."""

    def __init__(self, platform: Platform, drive: PoolDrive) -> None:
        self._platform = platform
        self._drive = drive

    async def start(self, listener: ReplicaListener) -> None:
        """Start the platform."""
        await self._platform.start(listener)

    async def fleet(self) -> Fleet:
        """Return the fleet of the platform, with as many rows as a call may have by what is known now."""
        self._drive.offer_anew()
        fleet = await self._platform.fleet()
        return replace(fleet, slots_per_replica=fleet.slots_per_replica * max(1, self._drive.rows_per_call))

    async def scale_to(self, replicas: int) -> None:
        """Ask the platform."""
        await self._platform.scale_to(replicas)

    async def stop(self) -> None:
        """Stop the platform."""
        await self._platform.stop()
