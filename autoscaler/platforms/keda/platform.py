"""The platform `keda`: the number of replicas is not told to anybody but kept, for KEDA to ask.

The server (`server`) answers from here. A pool is active while replicas are wanted, and from the first
request that arrives while none are: that is pushed at once, one decision before the controller knows of it.
Before the first wish (at the start, and always in recommend mode) there is no answer, so that KEDA and the
HPA leave the fleet as it is.
"""

import asyncio
from collections.abc import Callable

from autoscaler.clock import SystemClock
from autoscaler.domain import DropReason, Fleet, Outcome, Request, TokenUse
from autoscaler.platforms.keda.options import KedaOptions
from autoscaler.ports import Clock, ModelServer, ReplicaListener
from autoscaler.remote_fleet import RemoteFleet

_WISHES_TO_SLEEP = 2
"""The first wish after a pool woke may have been decided before the request came; the second was not [1]."""


class Keda:
    """Replicas of one pool that KEDA scales; a `ports.RequestListener` too.

    Parameters
    ----------
    options : KedaOptions
        Where the replicas are found.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock or None
        The time; None is the machine's.
    """

    def __init__(self, options: KedaOptions, server: ModelServer, clock: Clock | None = None) -> None:
        self._fleet = RemoteFleet(options.fleet, server, clock or SystemClock())
        self._wish: int | None = None
        self._awake_for = 0
        self._may_act: Callable[[], bool] = lambda: True
        self._watchers: set[asyncio.Event] = set()

    def __repr__(self) -> str:
        return f"<Keda desired={self.desired} watchers={len(self._watchers)} {self._fleet!r}>"

    @property
    def desired(self) -> int | None:
        """Replicas that KEDA shall have [1]; None before the first wish, and while another answers."""
        if self._wish is None or not self._may_act():
            return None
        return max(self._wish, 1) if self._awake_for else self._wish

    @property
    def is_active(self) -> bool | None:
        """Whether there shall be replicas; None as with `desired`."""
        return None if self.desired is None else self.desired > 0

    def watch(self) -> asyncio.Event:
        """Return an event that is set whenever `is_active` may have changed; `unwatch` it."""
        event = asyncio.Event()
        self._watchers.add(event)
        return event

    def unwatch(self, event: asyncio.Event) -> None:
        """Forget an event of `watch`."""
        self._watchers.discard(event)

    # -- ports.Platform

    async def start(self, listener: ReplicaListener) -> None:
        """Report who is there, and keep reporting."""
        await self._fleet.start(listener)

    async def fleet(self) -> Fleet:
        """Count the replicas."""
        return self._fleet.count()

    async def scale_to(self, replicas: int) -> None:
        """Answer `replicas` from now on. Raises PlatformUnavailable before `start` and after `stop`."""
        self._fleet.check_wish(replicas)
        self._awake_for = 0 if replicas else max(0, self._awake_for - 1)
        self._wish = replicas
        self._fleet.wanted(max(replicas, 1) if self._awake_for else replicas)
        self._tell()

    @property
    def listed(self) -> set[str]:
        """Ids of all that are listed, whether they answer or not; as in `ports.ListsReplicas`."""
        return self._fleet.listed

    def act_while(self, may_act: Callable[[], bool]) -> None:
        """Answer nothing when `may_act` says no; as in `ports.ActsLater`."""
        self._may_act = may_act

    def stand_by(self) -> None:
        """Answer nothing from now on, for another one answers."""
        self._wish, self._awake_for = None, 0
        self._fleet.stand_by()
        self._tell()

    async def stop(self) -> None:
        """End the watching and the answers; the replicas run on."""
        self.stand_by()
        await self._fleet.stop()

    # -- ports.RequestListener

    def arrived(self, request: Request, now: float) -> None:
        """Wake the pool if it sleeps."""
        if self._wish == 0 and not self._awake_for:
            self._awake_for = _WISHES_TO_SLEEP
            self._fleet.wanted(1)
            self._tell()

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing."""

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """Do nothing."""

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing."""

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """Do nothing."""

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """Do nothing."""

    def _tell(self) -> None:
        for event in self._watchers:
            event.set()
