"""The platform `kubernetes`: the number of replicas of something in a cluster, and pods behind its Service.

What there is, is seen through `sight`. While the API server is away requests go on to the replicas that are
known and still answer; the fleet is unknown then, so the controller holds.

Down goes gently: see `scale_down`. Up is bounded by supply: while there are pods that cannot be scheduled,
one of them is left as a probe, and no more are asked for than that.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from dataclasses import replace
from random import Random

import structlog

from autoscaler.clock import SystemClock
from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import CONFLICT, Api, ApiRefused
from autoscaler.platforms.kubernetes.deletion_cost import are_priced, mark
from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.kubernetes.pods import (
    PodAges,
    PodCounts,
    UnmadePods,
    count_pods,
    members_of,
)
from autoscaler.platforms.kubernetes.scale_down import Departure, Place, plan_departure
from autoscaler.platforms.kubernetes.sight import Sight
from autoscaler.platforms.kubernetes.target import Scale, Target
from autoscaler.ports import Clock, ModelServer, ReplicaListener
from autoscaler.remote_fleet import FleetReport, Pauses, RemoteFleet

_ATTEMPTS = 5
"""So often is a change made anew that somebody else's change came before [1]."""
_EDITS, _EDITS_WITHIN = 3, 900.0
"""Somebody who sets the number so often [1] within such a time [s] will go on doing so."""
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
        self._sight = Sight(self._api, options, self._pauses, self._look)
        self._leaving: dict[str, float] = {}
        self._let_go: set[str] = set()
        self._left = 0
        """So many pods are left once the cluster has chosen [1]; while it rolls, more than are asked for."""
        self._ours: set[str] = set()
        self._asked: int | None = None
        self._unanswered: int | None = None
        """Asked for last, if no answer came: it may have come about."""
        self._edits: deque[float] = deque(maxlen=_EDITS)
        self._ages, self._counts, self._unmade = PodAges(), PodCounts(), UnmadePods()
        self._complained: str | None = None
        self._room: int | None = None
        """For so many there are nodes; None if nothing lacks."""
        self._one_at_a_time = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Kubernetes {self._sight.target} asked={self._asked} {self._fleet!r}>"

    @property
    def last_error(self) -> str | None:
        """What keeps the fleet from being known, or from being as wanted, for a person; else None."""
        if (why := self._sight.why_unknown) is not None:
            return why
        if self._fleet.roster.ready == 0 and (why := self._sight.missed_service) is not None:
            return why
        if self._counts.why is not None:
            return self._counts.why
        if never := self._unmade.overdue:
            return f"{never} pods were never made, for a quota perhaps; see why: kubectl get events"
        return None

    # -- ports.Platform

    async def start(self, listener: ReplicaListener) -> None:
        """Report who is there, and keep reporting; returns at the first look, or after a while without."""
        self._fleet.roster.start(listener)
        self._sight.start()
        try:
            async with asyncio.timeout(_FIRST_LOOK):
                await self._sight.first_look()
        except TimeoutError:
            log.warning("API server cannot be asked yet", why=self._sight.why_unknown)
        await self._fleet.start(listener)

    async def fleet(self) -> Fleet:
        """Count the replicas. Raises PlatformUnavailable while the API server is away."""
        if (why := self._sight.why_unknown) is not None:
            raise PlatformUnavailable(why)
        self._look()
        edited = await self._edited()
        self._complain()
        return replace(self._fleet.count(), edited=edited)

    async def look_anew(self) -> None:
        """Take over what is asked for now, whoever asked, so that pods to be made are counted on.

        Raises PlatformUnavailable if the API server is away or refuses.
        """
        self._asked = (await self._sight.scale(self._known_target())).replicas
        self._unanswered = None

    async def scale_to(self, replicas: int) -> None:
        """Ask for `replicas`, or for a step towards fewer; idempotent.

        Raises PlatformUnavailable if the API server is away or refuses.
        """
        self._fleet.check_wish(replicas)
        target = self._known_target()
        async with self._one_at_a_time:
            for attempt in range(_ATTEMPTS):
                try:
                    await self._step(target, replicas)
                    return
                except ApiRefused as error:
                    if error.status != CONFLICT or attempt == _ATTEMPTS - 1:
                        raise

    @property
    def listed(self) -> set[str]:
        """Ids of all that are listed, whether they answer or not; as in `ports.ListsReplicas`."""
        return self._fleet.listed

    def stand_by(self) -> None:
        """Forget what was asked for from here, and let those serve on that were to go."""
        self._asked, self._unanswered, self._let_go = None, None, set()
        self._fleet.stand_by()
        self._leave([])

    async def stop(self) -> None:
        """End the watching; the pods run on."""
        await self._sight.stop()
        await self._fleet.stop()
        await self._api.close()

    # -- what there is

    def _known_target(self) -> Target:
        """Return what is scaled. Raises PlatformUnavailable while that cannot be looked at."""
        target, why = self._sight.target, self._sight.why_unknown
        if target is None or why is not None:
            raise PlatformUnavailable(why or "what is scaled is not known yet")
        return target

    def _pauses(self) -> Pauses:
        return Pauses(_PAUSE_INITIAL, _PAUSE_MAX, self._rng)

    def _look(self) -> None:
        """Take in what is seen."""
        if not self._sight.is_whole:
            return
        pods, options = self._sight.pods, self._options
        self._leaving = {uid: since for uid, since in self._leaving.items() if uid in pods}
        self._take_back_survivors()
        # A pod that is deleted may be listed as ready for a while, for the watches come one after the other.
        self._ours |= pods.keys()
        going = self._leaving.keys() | self._let_go | (self._ours - pods.keys())
        members = members_of(self._sight.slices, pods, options.port, options.is_https, going)
        listed = {member.id for member in members}
        self._ours &= pods.keys() | listed
        ages = self._ages.update(pods, listed, self._clock.now())
        self._counts = count_pods(pods, listed, ages, options.fleet.start_timeout)
        missing = 0 if self._asked is None else max(0, self._asked - self._counts.live)
        is_in_turn = bool(self._counts.starting) and not are_priced(self._sight.live_pods)
        self._unmade.update(missing, self._clock.now(), is_in_turn=is_in_turn)
        starting = self._counts.starting + self._unmade.expected
        overdue = self._counts.unschedulable + self._counts.stuck
        self._fleet.told(FleetReport(tuple(members), starting, overdue))

    def _take_back_survivors(self) -> None:
        """Let those serve again that we let go, and in whose place the cluster took others."""
        asked = [each for each in (self._asked, self._unanswered) if each is not None]
        if asked and self._let_go and len(self._sight.live_pods) <= max(min(asked), self._left):
            for uid in self._let_go:
                self._leaving.pop(uid, None)
            self._let_go = set()

    async def _edited(self) -> int | None:
        """Return how many somebody else has asked for since we did [1]; None if nobody has."""
        if self._sight.target is None or self._asked is None:
            return None
        replicas = (await self._scale(self._sight.target)).replicas
        return None if replicas == self._asked else replicas

    async def _scale(self, target: Target) -> Scale:
        """Read what is asked for now; what we asked for without an answer is ours, if it has come about."""
        scale = await self._sight.scale(target)
        if scale.replicas == self._unanswered:
            self._asked, self._unanswered = scale.replicas, None
        return scale

    def _complain(self) -> None:
        """Say what keeps the fleet from being as wanted, once for each reason."""
        why, before = self.last_error, self._complained
        if why is not None and why != before:
            log.warning("the fleet is not as wanted", name=self._options.name, why=why)
        self._complained = why

    # -- what shall be

    async def _step(self, target: Target, wanted: int) -> None:
        """Read what is asked for now, change it towards `wanted`. Raises ApiRefused (409): do it again."""
        scale = await self._scale(target)
        self._known_target()  # its pods may be others since
        if self._asked is not None and scale.replicas != self._asked:
            self._say_edit(target, scale.replicas, self._asked)
        within_supply = self._within_supply(wanted)
        if within_supply < scale.replicas:
            await self._shrink(target, scale, within_supply)
        else:
            self._leave(self._let_go)
            await mark(target, self._sight.live_pods, (), self._let_go)
            await self._ask(target, scale, within_supply)
        self._fleet.wanted(wanted)

    def _say_edit(self, target: Target, found: int, asked: int) -> None:
        self._edits.append(self._clock.now())
        if len(self._edits) < _EDITS or self._edits[-1] - self._edits[0] > _EDITS_WITHIN:
            log.info("somebody else scaled", target=str(target), found=found, asked=asked)
            return
        self._edits.clear()
        remedy = "is there an HPA for it? remove that, or let this pool only recommend"
        log.warning("somebody else scales it all the time; " + remedy, target=str(target), found=found)

    def _within_supply(self, wanted: int) -> int:
        """Return `wanted`, or fewer if pods cannot be scheduled: those that can, and one to probe with."""
        room, before = None, self._room
        if self._counts.unschedulable:
            room = self._counts.live - self._counts.unschedulable
        self._room = room
        if room is None or wanted <= room + 1:
            return wanted
        tell = log.debug if room == before else log.warning
        tell("there is no room for all that is wanted", desired=wanted, room=room)
        return room + 1

    async def _shrink(self, target: Target, scale: Scale, wanted: int) -> None:
        departure = self._plan(scale.replicas, wanted)
        self._leave(self._let_go.union(departure.leaving))
        if departure.replicas < scale.replicas:
            going = set(departure.gone)  # one that is not ready may be so before the cluster chooses
            await mark(target, self._sight.live_pods, going, self._let_go)
            self._let_go.update(departure.gone)
            self._left = sum(pod["metadata"]["uid"] not in self._let_go for pod in self._sight.live_pods)
            try:
                await self._ask(target, scale, departure.replicas)
            except ApiRefused:
                self._let_go.difference_update(departure.gone)
                raise
        else:
            await mark(target, self._sight.live_pods, (), self._let_go)
            self._asked, self._unanswered = scale.replicas, None

    def _plan(self, replicas: int, wanted: int) -> Departure:
        """Plan for those that are not on their way already."""
        pods = [pod for pod in self._sight.live_pods if pod["metadata"]["uid"] not in self._let_go]
        serving = {member.id for member in self._fleet.roster.members}
        answering, busy = self._fleet.roster.answering, self._fleet.busy_slots()
        places = [
            Place(
                uid=(uid := str(pod["metadata"]["uid"])),
                name=str(pod["metadata"]["name"]),
                is_ready=uid in serving,
                answers=uid in answering,
                busy=busy.get(uid, 0),
                leaving_since=self._leaving.get(uid),
            )
            for pod in pods
        ]
        now, most = self._clock.now(), self._options.drain_max
        return plan_departure(places, replicas, wanted, now, most, is_ordered=not are_priced(pods))

    def _leave(self, uids: Collection[str]) -> None:
        """Have exactly these leave: they get nothing new; others that were to are taken back."""
        now = self._clock.now()
        self._leaving = {uid: self._leaving.get(uid, now) for uid in uids}
        self._look()

    async def _ask(self, target: Target, scale: Scale, replicas: int) -> None:
        """Change the number, if it is another one, and leave an Event."""
        if replicas == scale.replicas:
            self._asked, self._unanswered = replicas, None
            self._look()
            return
        self._unanswered = replicas
        try:
            changed = await target.change(scale, replicas)
        except ApiRefused:
            self._unanswered = None
            raise
        self._asked, self._unanswered = replicas, None
        self._look()
        log.info("scaled", target=str(target), before=scale.replicas, desired=replicas)
        reason = "ScaledUp" if replicas > scale.replicas else "ScaledDown"
        try:
            note = f"Scaled from {scale.replicas} to {replicas} replicas"
            await target.say(note, reason, changed.uid, self._clock.wall_time())
        except PlatformUnavailable as error:
            log.warning("the change could not be told by an Event", why=str(error))
