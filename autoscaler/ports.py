"""What the program asks of the world, on one page.

Adapters implement `ModelServer` and `Platform`; drivers implement the listeners. Each port ships with
an in-memory fake in `tests/fakes`. What an adapter cannot do it says with an error of `errors.py`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from autoscaler.domain import Decision, DropReason, Fleet, Observation, Outcome, Request, TokenUse
from autoscaler.domain.model import ModelDescription, SizeTime

if TYPE_CHECKING:  # so that who has no controller needs none of its mathematics
    from autoscaler.scaling import Controller
    from autoscaler.scaling.fit import Fitted


class Clock(Protocol):
    """Two times: one that never jumps, for durations; one of the calendar, for seasons."""

    def now(self) -> float:
        """Monotonic time [s]."""

    def wall_time(self) -> float:
        """Seconds since the epoch, UTC."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One incarnation of a model server: a restart is another replica, with another id."""

    id: str
    url: str
    """Base URL of its HTTP port, without a trailing slash."""
    slots: int
    """Requests it serves at a time [1]."""
    grpc_target: str | None = None
    """Its gRPC port as `host:port`; None if it has none."""
    learns_from: int | None = None
    """Let it begin with so many slots [1], and learn how many of `slots` it does well with. None: all."""


class ModelServer(Protocol):
    """How one kind of server is asked whether it can serve."""

    async def ready(self, url: str) -> bool:
        """Whether the server at base URL `url` takes requests now; any failure to ask is a no."""

    async def slots(self, url: str) -> int | None:
        """How many requests it shall have at a time, as its own configuration says; None if it does not."""


class Sleeps(Protocol):
    """A kind of server that can let its GPU go and keep its process, to be back sooner than a new one."""

    async def sleep(self, url: str) -> bool:
        """Put the server at base URL `url` to sleep; whether it sleeps now. It must be idle."""

    async def wake(self, url: str) -> bool:
        """Wake it; whether it is awake now."""

    async def is_asleep(self, url: str) -> bool:
        """Whether it says that it sleeps; one that does not say is awake."""


class DescribesModels(Protocol):
    """A model server that tells what its models take, and how long they took."""

    async def describe(self, url: str, model: str, version: str = "") -> ModelDescription | None:
        """What it says of a model; None if it is not there, or cannot be asked."""

    async def statistics(self, url: str, model: str) -> tuple[SizeTime, ...]:
        """How long batches of each size took there so far; empty if nobody can tell."""


class ReplicaListener(Protocol):
    """What a platform tells the request path about its replicas (the proxy implements it)."""

    def replica_ready(self, replica: Replica) -> None:
        """It takes requests from now on; also after it was draining or lost, under the same id."""

    def replica_draining(self, replica_id: str) -> None:
        """It gets nothing new from now on."""

    def replica_lost(self, replica_id: str) -> None:
        """It is gone, or not ready; forget it as soon as nothing runs on it."""

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        """One that is ready was probed through the port that serves. Told by platforms whose servers answer
        probes also while they serve; the others have to be patient, and say only what comes of it."""

    def busy_slots(self) -> Mapping[str, int]:
        """Slots in use by replica id; a replica with none may be absent. Read from the ledger."""


class Platform(Protocol):
    """Where replicas live: local processes, a fixed list, Kubernetes, …"""

    async def start(self, listener: ReplicaListener) -> None:
        """Find what runs already, report it to `listener`, and keep reporting until `stop`."""

    async def fleet(self) -> Fleet:
        """How many replicas there are in each state. Raises PlatformUnavailable if nobody can tell."""

    async def scale_to(self, replicas: int) -> None:
        """Ask for `replicas`, ready and starting together; idempotent; returns before it has come true.

        Raises PlatformUnavailable if it cannot be asked.
        """

    async def stop(self) -> None:
        """Let go of everything: what this platform started ends, nothing is left behind."""


@runtime_checkable
class TellsTrouble(Protocol):
    """A platform that goes on trying by itself what did not succeed, and says so."""

    @property
    def last_error(self) -> str | None:
        """What keeps the fleet from being known, or from being as wanted, for a person; else None."""


@runtime_checkable
class StandsBy(Protocol):
    """A platform that goes on by itself with what it was asked for: repeats it, or answers it when asked."""

    def stand_by(self) -> None:
        """Do no more for what was asked for: somebody else asks from now on. `scale_to` ends it."""


@runtime_checkable
class ActsLater(Protocol):
    """A platform that carries out, or answers, what it was asked for some time after."""

    def act_while(self, may_act: Callable[[], bool]) -> None:
        """Ask `may_act` each time, just before: this program may have stood still since it was asked, and
        another may act by now."""


@runtime_checkable
class LooksAnew(Protocol):
    """A platform whose `fleet` is what it was told some time ago, or what was asked for through it."""

    async def look_anew(self) -> None:
        """Have `fleet` say what there is now: others may have asked for replicas till this moment.

        Raises PlatformUnavailable if nobody tells.
        """


@runtime_checkable
class ListsReplicas(Protocol):
    """A platform that knows which replicas there are, also of those that do not answer."""

    @property
    def listed(self) -> Collection[str]:
        """Return their ids."""


class Leadership(Protocol):
    """Which one of several programs that look after the same pools acts. The others observe and decide as it
    does, and are ready to take its place."""

    @property
    def is_leader(self) -> bool:
        """Whether this one acts, at this very moment; it turns false before another's can turn true."""

    @property
    def leader(self) -> str | None:
        """Name of the one that acts, as last heard, for a person; None if there is none, or nobody knows."""

    async def run(self) -> None:
        """Seek to lead and keep leading until cancelled, then give it up, so that another can lead at once.

        Nothing that goes wrong outside ends it: who cannot be sure to lead does not lead.
        """


class RequestListener(Protocol):
    """Who is told the facts of the request path: the observer of the control path, the metrics.

    `now` is monotonic [s]. Calls come in the order of the facts, from the event loop, and return at once.
    """

    def arrived(self, request: Request, now: float) -> None:
        """A request is at the door; whatever becomes of it, `ended` follows once.

        If another pool takes it over, all that follows is told to the listeners of that one.
        """

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """It got a slot, or one for each of its rows: its waiting time is over, its service begins."""

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """Its slots are free again after `service_time` [s]; this or `returned`, once for each `started`."""

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """It gave its slot back unserved, for its server refused it; it waits again."""

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """It ended; `reason` tells why if the queue let go of it."""

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """So many tokens its answer took, which has passed to its last byte, or broke off. Told of language
        models, once; also after `ended`, for a slot is free before the last byte has left."""


class DecisionLog(Protocol):
    """Where decisions and what they were made from are kept, so that they can be explained and re-run."""

    def record(
        self,
        pool: str,
        observation: Observation | None,
        fleet: Fleet,
        decision: Decision,
        now: float,
        wall_time: float,
    ) -> None:
        """Keep one step of the control path; returns at once, is on disk within one interval."""


class ControllerJournal(Protocol):
    """Where the controller itself is kept now and then, so that its decisions can be re-executed from there.

    A step is known by its two times, `now` and `wall_time`; they are those that `DecisionLog.record` is told.
    Both calls return at once and keep the object as it is at the call.
    """

    def checkpoint(self, pool: str, controller: "Controller", now: float, wall_time: float) -> None:
        """Keep the controller as it is before the step of `now` and `wall_time`."""

    def adopted(self, pool: str, fitted: "Fitted", now: float, wall_time: float) -> None:
        """Keep a fit that is adopted after the step of `now` and `wall_time`, and before the next."""
