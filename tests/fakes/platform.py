"""A platform in memory: replicas start after a fixed time, drain, and end, on the clock that it is given."""

from dataclasses import dataclass

from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.ports import Clock, Replica, ReplicaListener


@dataclass
class _Held:
    replica: Replica
    ready_at: float
    state: str = "starting"


class InMemoryPlatform:
    """Behaves like a platform with `room` for replicas that take `cold_start` [s] to start.

    Nothing happens between calls: `fleet`, `scale_to` and `catch_up` first let happen what is due by now.
    Set `is_unavailable` to have it refuse. `asked` holds every number it was asked for.
    """

    def __init__(
        self,
        clock: Clock,
        cold_start: float = 60.0,
        slots_per_replica: int = 1,
        ready: int = 0,
        room: int = 1000,
    ) -> None:
        self.asked: list[int] = []
        self.is_unavailable = False
        self.edited: int | None = None
        self._clock, self._cold_start, self._slots, self.room = clock, cold_start, slots_per_replica, room
        self._listener: ReplicaListener | None = None
        self._serial = 0
        self._held: list[_Held] = []
        for _ in range(ready):
            self._order(ready_at=clock.now())

    async def start(self, listener: ReplicaListener) -> None:
        self._listener = listener
        self.catch_up()

    async def fleet(self) -> Fleet:
        self._refuse_if_unavailable()
        self.catch_up()
        return Fleet(
            edited=self.edited,
            ready=len(self._in("ready")),
            starting=len(self._in("starting")),
            draining=len(self._in("draining")),
            slots_per_replica=self._slots,
            cold_start_mean=self._cold_start,
            cold_start_p90=self._cold_start,
        )

    async def scale_to(self, replicas: int) -> None:
        self._refuse_if_unavailable()
        self.asked.append(replicas)
        self.catch_up()
        ordered = self._in("starting") + self._in("ready")
        for held in self._in("draining")[: max(0, replicas - len(ordered))]:
            held.state = "starting"  # ready again at once, by its old time
            ordered.append(held)
        for _ in range(min(replicas - len(ordered), self.room - len(self._held))):
            self._order(ready_at=self._clock.now() + self._cold_start)
        for held in ordered[: max(0, len(ordered) - replicas)]:  # the starting ones come first
            self._let_go(held)
        self.catch_up()

    async def stop(self) -> None:
        for held in list(self._held):
            self._end(held)
        self._listener = None

    def lose(self, replica_id: str) -> None:
        """Have a replica die; nobody replaces it before the next `scale_to`."""
        self._end(next(held for held in self._held if held.replica.id == replica_id))

    def catch_up(self) -> None:
        """Let happen what is due by now: starts that are over, and drains that are."""
        for held in self._in("starting"):
            if held.ready_at <= self._clock.now() and self._listener:
                held.state = "ready"
                self._listener.replica_ready(held.replica)
        for held in self._in("draining"):
            if self._listener and not self._listener.busy_slots().get(held.replica.id, 0):
                self._end(held)

    def _order(self, ready_at: float) -> None:
        self._serial += 1
        replica = Replica(f"r{self._serial}", f"http://127.0.0.1:{10_000 + self._serial}", self._slots)
        self._held.append(_Held(replica, ready_at))

    def _let_go(self, held: _Held) -> None:
        if held.state == "starting" or self._listener is None:
            self._held.remove(held)
            return
        held.state = "draining"
        self._listener.replica_draining(held.replica.id)

    def _end(self, held: _Held) -> None:
        self._held.remove(held)
        if self._listener and held.state != "starting":
            self._listener.replica_lost(held.replica.id)

    def _in(self, state: str) -> list[_Held]:
        return [held for held in self._held if held.state == state]

    def _refuse_if_unavailable(self) -> None:
        if self.is_unavailable:
            raise PlatformUnavailable("the platform in memory was told to refuse")
