"""Who is listed, and who of them answers: probes replicas that come and go, and tells the request path.

A list is believed about who may be used, a probe about who can be. So a listed replica counts as ready once
it answers through its own port, is lost after some failed probes in a row, and gets nothing new from the
moment in which it is listed as draining, or not listed any more. No list at all changes nothing.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import structlog

from autoscaler.ports import Clock, ModelServer, Replica, ReplicaListener
from autoscaler.remote_fleet.member import Member
from autoscaler.remote_fleet.options import RemoteFleetOptions

EAGER_PAUSE = 0.5
"""Between probes of a replica that has not been ready yet, or is not any more, at most [s]."""

_SERVED_MAX = 10_000
"""Names of replicas that are not listed any more and might come back [1]."""

_CONNECTS_WITHIN = 1.0
"""Who takes longer to take a connection is not there [s]."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Watched:
    member: Member
    listed_at: float
    was_there: bool = False
    """Whether it was there before us."""
    is_ready: bool = False
    was_ready: bool = False
    is_there: bool = False
    """Whether something listens at its port, of one that has never been ready."""
    failures: int = 0
    probed: asyncio.Event = field(default_factory=asyncio.Event)
    watch: "asyncio.Task[None] | None" = None

    @property
    def serves(self) -> bool:
        return self.is_ready and not self.member.is_draining


class Roster:
    """The replicas that are listed now, and their watches.

    Parameters
    ----------
    options : RemoteFleetOptions
        How they are watched.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock
        The time.
    came : callable
        Called when a replica gets ready for the first time; not for those that were there before us.
    """

    def __init__(
        self, options: RemoteFleetOptions, server: ModelServer, clock: Clock, came: Callable[[], None]
    ) -> None:
        self._options, self._server, self._clock, self._came = options, server, clock, came
        self._listener: ReplicaListener | None = None
        self._watched: dict[str, _Watched] = {}
        self._served: dict[str, None] = {}  # names of incarnations that are not listed now, the oldest first
        self._is_adopting = True
        self._was_told = False

    def __repr__(self) -> str:
        return f"<Roster ready={self.ready} draining={self.draining} listed={len(self._watched)}>"

    @property
    def ready(self) -> int:
        """Replicas that take requests [1]."""
        return sum(watched.serves for watched in self._watched.values())

    @property
    def draining(self) -> int:
        """Replicas that finish what they hold [1]."""
        return sum(watched.member.is_draining for watched in self._watched.values())

    def coming(self, patience: float) -> int:
        """Return how many are listed, have never answered, and are not yet hopeless [1]."""
        now = self._clock.now()
        return sum(
            not watched.was_ready and not watched.member.is_draining and now - watched.listed_at < patience
            for watched in self._watched.values()
        )

    def there(self, patience: float) -> int:
        """Return how many have never answered, take connections, and are not yet hopeless [1]."""
        now = self._clock.now()
        return sum(
            watched.is_there and not watched.was_ready and now - watched.listed_at < patience
            for watched in self._watched.values()
        )

    @property
    def members(self) -> list[Member]:
        """Who is listed."""
        return [watched.member for watched in self._watched.values()]

    @property
    def answering(self) -> set[str]:
        """Ids of those that answered when they were probed last; of draining ones before they drained."""
        return {key for key, watched in self._watched.items() if watched.is_ready}

    def start(self, listener: ReplicaListener) -> None:
        """Tell `listener` from now on."""
        self._listener = listener

    def told(self, members: Iterable[Member]) -> None:
        """Take in a whole list; who is not in it is gone."""
        listed = {member.id: member for member in members}
        was_there, self._was_told = self._options.is_told and not self._was_told, True
        for gone in [watched for key, watched in self._watched.items() if key not in listed]:
            self._forget(gone)
        for member in listed.values():
            watched = self._watched.get(member.id)
            if (
                watched is not None
                and replace(member, is_draining=watched.member.is_draining) != watched.member
            ):
                self._forget(watched)  # the same name, another place
                watched = None
            if watched is None:
                self._begin(member, was_there=was_there)
            elif member.is_draining != watched.member.is_draining:
                self._turn(watched, member)

    async def adopted(self) -> None:
        """Wait until everybody who is listed now has been probed once; who answers was there before us."""
        await asyncio.gather(*(watched.probed.wait() for watched in list(self._watched.values())))
        self._is_adopting = False

    async def stop(self) -> None:
        """End the watching; the replicas run on."""
        watches = [watched.watch for watched in self._watched.values() if watched.watch is not None]
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        self._watched.clear()

    def _begin(self, member: Member, *, was_there: bool) -> None:
        served = member.id in self._served
        watched = _Watched(member, self._clock.now(), was_there, was_ready=served)
        self._watched[member.id] = watched
        watched.watch = asyncio.create_task(self._watch(watched), name=f"watch {member.url}")

    def _turn(self, watched: _Watched, member: Member) -> None:
        """It began to drain, or was taken back."""
        watched.member = member
        if not watched.is_ready or self._listener is None:
            return
        if member.is_draining:
            log.info("replica drains", replica=member.id)
            self._listener.replica_draining(member.id)
        else:
            log.info("replica is taken back from draining", replica=member.id)
            self._listener.replica_ready(self._as_replica(member))

    def _forget(self, watched: _Watched) -> None:
        del self._watched[watched.member.id]
        self._remember(watched)
        watched.probed.set()
        if watched.watch is not None:
            watched.watch.cancel()
        if watched.is_ready and self._listener is not None:
            log.info("replica is gone", replica=watched.member.id)
            self._listener.replica_lost(watched.member.id)

    def _remember(self, watched: _Watched) -> None:
        """Know it again if it comes back: that is no start. A URL says nothing of who is there."""
        if watched.was_ready and watched.member.id != watched.member.url:
            self._served.pop(watched.member.id, None)
            self._served[watched.member.id] = None
            if len(self._served) > _SERVED_MAX:
                del self._served[next(iter(self._served))]

    async def _watch(self, watched: _Watched) -> None:
        while True:
            if not watched.member.is_draining:
                answers = await self._server.ready(watched.member.url)
                if not answers and not watched.was_ready:
                    await self._look_whether_it_is_there(watched)
                self._take_in(watched, answers)
            watched.probed.set()
            interval = self._options.probe_interval
            await asyncio.sleep(interval if watched.is_ready else min(interval, EAGER_PAUSE))

    async def _look_whether_it_is_there(self, watched: _Watched) -> None:
        """One that does not answer the probe may listen all the same: then it is there, and may start."""
        before, watched.is_there = watched.is_there, await _is_listening(watched.member.url)
        if watched.is_there and not before and self._is_adopting:
            log.warning(
                "a server is there and does not answer the probe; is the path of it right?",
                url=watched.member.url,
            )

    def _take_in(self, watched: _Watched, answers: bool) -> None:
        """Judge one probe; the replica may have begun to drain while it was asked."""
        if watched.member.is_draining or self._listener is None:
            return
        watched.failures = 0 if answers else watched.failures + 1
        if answers and not watched.is_ready:
            log.info("replica is ready", replica=watched.member.id, url=watched.member.url)
            is_new = not (watched.was_ready or watched.was_there or self._is_adopting)
            watched.is_ready = watched.was_ready = True
            self._listener.replica_ready(self._as_replica(watched.member))
            if is_new:
                self._came()
        elif watched.is_ready and watched.failures >= self._options.probe_failures:
            log.warning("replica answers no more", replica=watched.member.id, failed_probes=watched.failures)
            watched.is_ready = False
            self._listener.replica_lost(watched.member.id)

    def _as_replica(self, member: Member) -> Replica:
        return Replica(member.id, member.url, self._options.slots_per_replica, member.grpc_target)


async def _is_listening(url: str) -> bool:
    """Whether connections are taken at the address of a URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_CONNECTS_WITHIN):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except OSError:  # TimeoutError is one
        return False
    writer.close()
    return True
