"""The platform `kubernetes`: the number of replicas of something in a cluster, and pods behind its Service.

Two mirrors keep what there is: the EndpointSlices of the Service, which say who is ready, and the pods of
what is scaled, which say who comes, who goes, and who cannot be scheduled. While the API server is away
requests go on to the replicas that are known and still answer; the fleet is unknown then, so the controller
holds.

Down goes gently: see `scale_down`. Up is bounded by supply: while there are pods that cannot be scheduled,
one of them is left as a probe, and no more are asked for than that.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import structlog

from autoscaler.clock import SystemClock
from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import CONFLICT, Api, ApiRefused
from autoscaler.platforms.kubernetes.mirror import Mirror
from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.kubernetes.pods import PodCounts, count_pods, is_live, members_of
from autoscaler.platforms.kubernetes.scale_down import Departure, Place, plan_departure
from autoscaler.platforms.kubernetes.target import CHEAP, Scale, Target, find_target, slices_path
from autoscaler.ports import Clock, ModelServer, ReplicaListener
from autoscaler.remote_fleet import FleetReport, Pauses, RemoteFleet

_ATTEMPTS = 5
"""So often is a change made anew that somebody else's change came before [1]."""
_MADE_WITHIN = 60.0
"""Pods that were asked for and have not been made after so long, for a quota say, are not counted on [s]."""
_FIRST_LOOK = 10.0
"""A start waits so long for the API server, and then goes on without it [s]."""
_PAUSE_INITIAL, _PAUSE_MAX = 1.0, 30.0
"""Between attempts while the API server is away [s]."""

log = structlog.get_logger(__name__)


class Kubernetes:
    """Replicas of one pool that are pods.

    Parameters
    ----------
    options : KubernetesOptions
        What is scaled, and behind which Service.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock or None
        The time; None is the machine's.
    rng : Random or None
        For the pauses between attempts; None draws a seed of its own.
    """

    def __init__(
        self,
        options: KubernetesOptions,
        server: ModelServer,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        self._options, self._clock, self._rng = options, clock or SystemClock(), rng or Random()
        self._fleet = RemoteFleet(options.fleet, server, self._clock)
        self._api = Api(lambda: load_access(options.kubeconfig, options.context))
        self._listener: ReplicaListener | None = None
        self._target: Target | None = None
        self._pods: Mirror | None = None
        self._slices: Mirror | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._leaving: dict[str, float] = {}
        self._let_go: set[str] = set()
        self._cheap: set[str] = set()
        self._asked: int | None = None
        self._asked_at = 0.0
        self._away: str | None = "the API server was not asked yet"
        self._counts = PodCounts(0, 0, 0)
        self._one_at_a_time = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Kubernetes {self._target} asked={self._asked} {self._fleet!r}>"

    @property
    def last_error(self) -> str | None:
        """What keeps the fleet from being known, or from being as wanted, for a person; else None."""
        if (why := self._why_unknown()) is not None:
            return why
        if self._counts.unschedulable:
            return f"{self._counts.unschedulable} pods cannot be scheduled: {self._counts.why}"
        return None

    # -- ports.Platform

    async def start(self, listener: ReplicaListener) -> None:
        """Report who is there, and keep reporting; returns at the first look, or after a while without."""
        self._listener = listener
        self._fleet.roster.start(listener)
        looked = asyncio.Event()
        self._tasks.append(asyncio.create_task(self._connect(looked), name=f"connect {self._options.name}"))
        try:
            async with asyncio.timeout(_FIRST_LOOK):
                await looked.wait()
        except TimeoutError:
            log.warning("API server cannot be asked yet", why=self._why_unknown())
        await self._fleet.start(listener)

    async def fleet(self) -> Fleet:
        """Count the replicas. Raises PlatformUnavailable while the API server is away."""
        if (why := self._why_unknown()) is not None:
            raise PlatformUnavailable(why)
        self._look()
        return replace(self._fleet.count(), edited=await self._edited())

    async def scale_to(self, replicas: int) -> None:
        """Ask for `replicas`, or for a step towards fewer; idempotent.

        Raises PlatformUnavailable if the API server is away or refuses.
        """
        if replicas < 0:
            raise ValueError(f"need replicas >= 0, got {replicas}")
        if self._listener is None:
            raise PlatformUnavailable("pods cannot be asked for before start or after stop")
        target, why = self._target, self._why_unknown()
        if target is None or why is not None:
            raise PlatformUnavailable(why or "what is scaled is not known yet")
        async with self._one_at_a_time:
            for attempt in range(_ATTEMPTS):
                try:
                    await self._step(target, replicas)
                    return
                except ApiRefused as error:
                    if error.status != CONFLICT or attempt == _ATTEMPTS - 1:
                        raise

    async def stop(self) -> None:
        """End the watching; the pods run on."""
        self._listener = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fleet.stop()
        await self._api.close()

    # -- what there is

    async def _connect(self, looked: asyncio.Event) -> None:
        """Find what is scaled, however long that takes, and mirror its pods and its Service."""
        pauses = self._pauses()
        while True:
            try:
                target = await find_target(self._api, self._options)
                scale = await target.scale()
                slices = await slices_path(self._api, target.namespace)
                break
            except PlatformUnavailable as error:
                tell = log.debug if self._away == str(error) else log.warning
                tell("what is scaled cannot be looked at", name=self._options.name, why=str(error))
                self._away = str(error)
                await asyncio.sleep(pauses.next())
        self._target, self._away = target, None
        service = f"kubernetes.io/service-name={self._options.service}"
        self._pods = self._mirror(f"/api/v1/namespaces/{target.namespace}/pods", scale.selector)
        self._slices = self._mirror(slices, service)
        self._tasks += [asyncio.create_task(mirror.run()) for mirror in (self._pods, self._slices)]
        await asyncio.gather(self._pods.listed.wait(), self._slices.listed.wait())
        self._look()
        looked.set()

    def _mirror(self, path: str, selector: str) -> Mirror:
        return Mirror(self._api, path, selector, self._pauses(), self._look)

    def _pauses(self) -> Pauses:
        return Pauses(_PAUSE_INITIAL, _PAUSE_MAX, self._rng)

    def _why_unknown(self) -> str | None:
        """Why nobody can tell what there is now; None if that is known."""
        if self._pods is None or self._slices is None:
            return self._away or "the API server was not asked yet"
        return self._pods.away or self._slices.away

    def _look(self) -> None:
        """Take in what the mirrors show."""
        if self._pods is None or self._slices is None:
            return
        if not (self._pods.listed.is_set() and self._slices.listed.is_set()):
            return
        pods, options = self._pods.objects, self._options
        self._leaving = {uid: since for uid, since in self._leaving.items() if uid in pods}
        self._take_back_survivors()
        slices = self._slices.objects.values()
        members = members_of(slices, pods, options.port, options.is_https, self._leaving)
        listed = {member.id for member in members}
        now, patience = self._clock.wall_time(), options.fleet.start_timeout
        self._counts = count_pods(pods.values(), listed, now, patience)
        starting = self._counts.starting + self._not_made_yet()
        self._fleet.told(FleetReport(tuple(members), starting, self._counts.unschedulable))

    def _take_back_survivors(self) -> None:
        """Let those serve again that we let go, and in whose place the cluster took others."""
        if self._pods is None or self._asked is None or not self._let_go:
            return
        if sum(map(is_live, self._pods.objects.values())) <= self._asked:
            for uid in self._let_go:
                self._leaving.pop(uid, None)
            self._let_go = set()

    async def _edited(self) -> int | None:
        """Return how many somebody else has asked for since we did [1]; None if nobody has."""
        if self._target is None or self._asked is None:
            return None
        replicas = (await self._target.scale()).replicas
        return None if replicas == self._asked else replicas

    def _not_made_yet(self) -> int:
        """Return how many pods were asked for just now and are not there [1]."""
        if self._asked is None or self._clock.now() - self._asked_at >= _MADE_WITHIN:
            return 0
        return max(0, self._asked - self._counts.live)

    # -- what shall be

    async def _step(self, target: Target, wanted: int) -> None:
        """Read what is asked for now, change it towards `wanted`. Raises ApiRefused (409): do it again."""
        scale = await target.scale()
        if self._asked is not None and scale.replicas != self._asked:
            log.info("somebody else scaled", target=str(target), found=scale.replicas, asked=self._asked)
        within_supply = self._within_supply(wanted)
        if within_supply < scale.replicas:
            await self._shrink(target, scale, within_supply)
        else:
            self._leave([])
            await self._ask(target, scale, within_supply)
        self._fleet.wanted(wanted)

    def _within_supply(self, wanted: int) -> int:
        """Return `wanted`, or fewer if pods cannot be scheduled: those that can, and one to probe with."""
        if not self._counts.unschedulable:
            return wanted
        can_be = self._counts.live - self._counts.unschedulable
        if wanted > can_be + 1:
            log.warning("there is no room for all that is wanted", desired=wanted, room=can_be)
        return min(wanted, can_be + 1)

    async def _shrink(self, target: Target, scale: Scale, wanted: int) -> None:
        departure = self._plan(scale.replicas, wanted)
        self._leave(departure.leaving)
        if departure.replicas < scale.replicas:
            await self._price(target, departure)
            await self._ask(target, scale, departure.replicas)
            self._let_go = set(departure.gone)
            self._look()
        else:
            self._asked = scale.replicas

    def _plan(self, replicas: int, wanted: int) -> Departure:
        pods = [] if self._pods is None else list(filter(is_live, self._pods.objects.values()))
        serving = {member.id for member in self._fleet.roster.members}
        busy = {} if self._listener is None else self._listener.busy_slots()
        places = [
            Place(
                uid=(uid := str(pod["metadata"]["uid"])),
                name=str(pod["metadata"]["name"]),
                is_ready=uid in serving,
                busy=busy.get(uid, 0),
                leaving_since=self._leaving.get(uid),
            )
            for pod in pods
        ]
        now, most = self._clock.now(), self._options.drain_max
        return plan_departure(places, replicas, wanted, now, most, is_ordered=not _is_priced(pods))

    def _leave(self, uids: Any) -> None:
        """Have exactly these leave: they get nothing new; others that were to are taken back."""
        now = self._clock.now()
        self._leaving = {uid: self._leaving.get(uid, now) for uid in uids}
        self._look()

    async def _price(self, target: Target, departure: Departure) -> None:
        """Make those cheap to delete that may go now, and those dear again that may not any more."""
        pods = {} if self._pods is None else self._pods.objects
        if not _is_priced(pods.values()):
            return
        going = set(departure.gone) & set(departure.leaving)  # others go before them anyhow
        changes: dict[str, str | None] = dict.fromkeys(sorted(going - self._cheap), CHEAP)
        changes |= dict.fromkeys(sorted(self._cheap & pods.keys() - going))
        for uid, cost in changes.items():
            try:
                await target.set_deletion_cost(str(pods[uid]["metadata"]["name"]), cost)
            except ApiRefused as error:
                log.warning("pods to go cannot be marked; others may go instead", why=str(error))
                return
        self._cheap = going

    async def _ask(self, target: Target, scale: Scale, replicas: int) -> None:
        """Change the number, if it is another one, and leave an Event."""
        if replicas == scale.replicas:
            self._asked = replicas
            return
        changed = await target.change(scale, replicas)
        self._asked, self._asked_at = replicas, self._clock.now()
        log.info("scaled", target=str(target), before=scale.replicas, desired=replicas)
        reason = "ScaledUp" if replicas > scale.replicas else "ScaledDown"
        try:
            note = f"Scaled from {scale.replicas} to {replicas} replicas"
            await target.say(note, reason, changed.uid, self._clock.wall_time())
        except PlatformUnavailable as error:
            log.warning("the change could not be told by an Event", why=str(error))


def _is_priced(pods: Any) -> bool:
    """Whether what makes the pods looks at the cost of their deletion: a ReplicaSet does."""
    owners = {
        owner["kind"]
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences") or ()
        if owner.get("controller")
    }
    return owners <= {"ReplicaSet"}
