"""A fleet that somebody else runs, as numbers for the controller: listed, probed, ordered."""

import asyncio
from collections.abc import Mapping

from autoscaler.cold_starts import ColdStarts
from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.held_folder import HeldFolder
from autoscaler.ports import Clock, ModelServer, ReplicaListener
from autoscaler.remote_fleet.dns import look_up
from autoscaler.remote_fleet.member import Member
from autoscaler.remote_fleet.options import RemoteFleetOptions
from autoscaler.remote_fleet.orders import Orders
from autoscaler.remote_fleet.report import FleetReport
from autoscaler.remote_fleet.roster import Roster


class RemoteFleet:
    """The replicas of one pool, wherever they are listed.

    Parameters
    ----------
    options : RemoteFleetOptions
        Where they are listed and how patient to be.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock
        The time.
    """

    def __init__(self, options: RemoteFleetOptions, server: ModelServer, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._cold_starts = ColdStarts(options.cold_start_initial, options.state_dir / "cold_starts.json")
        self._orders = Orders(self._cold_starts, options.start_timeout)
        self.roster = Roster(options, server, clock, self._came)
        self._held = HeldFolder(options.state_dir)
        self._listener: ReplicaListener | None = None
        self._desired: int | None = None
        self._starting_told: int | None = None
        self._overdue_told = 0
        self._is_refused = False
        self._looks: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<RemoteFleet desired={self._desired} {self.roster!r}>"

    async def start(self, listener: ReplicaListener) -> None:
        """Report to `listener` who is there, and keep reporting; returns once all were probed.

        A list that is told must have been told before. Raises UsageError if another program looks after this
        pool already, from the same folder of state.
        """
        self._held.take()
        self._listener = listener
        self.roster.start(listener)
        if not self._options.is_told:
            await self._look()
        await self.roster.adopted()
        if self._options.dns is not None:
            self._looks = asyncio.create_task(self._look_now_and_then())

    def told(self, report: FleetReport) -> None:
        """Take in what whoever runs the replicas says of them."""
        self._starting_told, self._overdue_told = report.starting, report.overdue
        if self._options.is_told:
            self.roster.told(report.members)

    def check_wish(self, replicas: int) -> None:
        """Raise ValueError if there cannot be so many; PlatformUnavailable before `start`, after `stop`."""
        if replicas < 0:
            raise ValueError(f"need replicas >= 0, got {replicas}")
        if self._listener is None:
            raise PlatformUnavailable("replicas cannot be asked for before start or after stop")

    def wanted(self, replicas: int) -> None:
        """So many are asked for from now on, ready and starting together."""
        ready, now = self.roster.ready, self._clock.now()
        if replicas != self._desired:
            self._orders.let_go(max(0, ready - replicas), now)
        self._desired = replicas
        self._orders.settle(replicas, ready, now)

    def stand_by(self) -> None:
        """Forget what was asked for from here: somebody else asks from now on."""
        self._desired, self._is_refused = None, False
        self._orders.clear()

    def refused(self, *, is_so: bool) -> None:
        """Whoever should start replicas says again and again that it cannot; or has done what was asked."""
        self._is_refused = is_so

    @property
    def listed(self) -> set[str]:
        """Ids of all that are listed, whether they answer or not."""
        return {member.id for member in self.roster.members}

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id; as in `ports.ReplicaListener`."""
        return {} if self._listener is None else self._listener.busy_slots()

    @property
    def start_timeout(self) -> float:
        """What was ordered and has not come after so long is not counted on any more [s]."""
        return self._options.start_timeout

    @property
    def ordered(self) -> int:
        """Replicas that are ready or can be counted on [1]."""
        return self.count().ordered

    @property
    def overdue(self) -> int:
        """Replicas that were asked for and should have come long ago [1]."""
        return self.count().overdue

    def count(self) -> Fleet:
        """Count the replicas in each state."""
        ready, now = self.roster.ready, self._clock.now()
        if self._desired is not None:
            self._orders.settle(self._desired, ready, now)
        starting, overdue = self._starting(now)
        if self._is_refused and self._desired is not None:
            overdue = max(overdue, self._desired - ready - starting)
        leaving = min(ready, self._orders.leaving(now))
        return Fleet(
            ready=ready - leaving,
            starting=starting,
            draining=self.roster.draining + leaving,
            slots_per_replica=self._options.slots_per_replica,
            cold_start_mean=self._cold_starts.mean,
            cold_start_p90=self._cold_starts.p90,
            overdue=overdue,
        )

    def _starting(self, now: float) -> tuple[int, int]:
        """Return how many may still be counted on, and how many should have come long ago [1].

        Those that are there and do not answer yet are starting, whoever has asked for them.
        """
        patience, is_told = self._options.start_timeout, self._options.is_told
        there = self.roster.coming(patience) if is_told else self.roster.there(patience)
        if self._starting_told is None:
            ordered = 0 if self._is_refused else self._orders.starting(now)
            return max(ordered, there), self._orders.overdue(now)
        return self._starting_told + there if is_told else max(self._starting_told, there), self._overdue_told

    async def stop(self) -> None:
        """End the watching; the replicas run on."""
        self._listener = None
        if self._looks is not None:
            self._looks.cancel()
            await asyncio.gather(self._looks, return_exceptions=True)
        await self.roster.stop()
        self._held.release()

    def _came(self) -> None:
        self._orders.came(self._clock.now())

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._options.look_interval)
            await self._look()

    async def _look(self) -> None:
        """Ask who is listed; an answer that nobody gives leaves everything as it is."""
        grpc_target = self._options.grpc_target
        if self._options.dns is not None:
            found = await look_up(self._options.dns)
        else:
            bases = [url.rstrip("/") for url in self._options.urls]
            found = tuple(Member(url, url) for url in bases)
        if found is not None:
            targets = [None if grpc_target is None else grpc_target(each.url) for each in found]
            listed = [Member(each.id, each.url, target) for each, target in zip(found, targets, strict=True)]
            self.roster.told(listed)
