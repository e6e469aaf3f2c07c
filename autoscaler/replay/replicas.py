"""Simulated replicas: they take a while to start, finish what they hold, and are paid for all along.

The rules are those of the local platform: what is starting is let go first, then what is idle, then
what is least busy; a draining replica is taken back before a new one is started; one that is lost is
replaced at once, without anybody deciding it.

Supply may be limited: so many replicas exist at most, in whatever state. What is ordered beyond is shown as
starting, costs nothing, and does not come up unless there is more supply one day. It is the first to be let
go, before any that exists, and if one that exists is lost, the place is taken by that one's replacement.

A replica may be slow at first: until `warm_at` it does its work slower by a factor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf

import numpy as np

from autoscaler.domain import Fleet
from autoscaler.replay.scenario import Scenario


class State(StrEnum):
    """Of a replica."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    ENDED = "ended"


@dataclass(slots=True)
class SimulatedReplica:
    """One replica from launch to end; times in seconds, inf for what will not happen as things are."""

    id: str
    launched_at: float
    """From when it is paid for."""
    ready_at: float
    warm_at: float
    slowness: float
    """Factor on the time of work before `warm_at`, >= 1 [1]."""
    state: State = State.STARTING

    def ready_to_do(self, work: float, now: float) -> float:
        """When `work` [s, of a warm replica] is done that begins now."""
        end = now + work
        if now >= self.warm_at:
            return end
        cold_work = (self.warm_at - now) / self.slowness
        return now + work * self.slowness if work <= cold_work else self.warm_at + work - cold_work

    def work_done(self, since: float, now: float) -> float:
        """Work between two times [s, of a warm replica]; the inverse of `ready_to_do`."""
        cold = max(0.0, min(now, self.warm_at) - since)
        return now - since - cold + cold / self.slowness


class SimulatedFleet:
    """All replicas of one pool. Returns what changed; the driver tells the dispatcher."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        self._scenario = scenario
        self._rng = rng
        self._supply_max = inf if scenario.supply_max is None else scenario.supply_max
        self._serial = 0
        self._existing = 0
        self._by_state: dict[State, dict[str, SimulatedReplica]] = {state: {} for state in State}
        self.replicas: dict[str, SimulatedReplica] = {}
        self._paid = 0.0

    def launch(self, count: int, now: float, *, at_once: bool = False) -> list[SimulatedReplica]:
        """Order `count` replicas; each is ready at its `ready_at`, inf if there is no supply for it."""
        launched = []
        for _ in range(count):
            self._serial += 1
            replica = SimulatedReplica(f"r{self._serial}", inf, inf, inf, self._scenario.warm_up_slowness)
            self.replicas[replica.id] = replica
            self._by_state[State.STARTING][replica.id] = replica
            if self._existing < self._supply_max:
                self._come_up(replica, now, 0.0 if at_once else self._scenario.start_time(self._rng))
            launched.append(replica)
        return launched

    def supplied(self, supply_max: int, now: float) -> list[SimulatedReplica]:
        """Let so many exist from now on; return those that were ordered before and come up now."""
        self._supply_max = supply_max
        waiting = [each for each in self._by_state[State.STARTING].values() if each.ready_at == inf]
        coming = waiting[: max(0, supply_max - self._existing)]
        for replica in coming:
            self._come_up(replica, now, self._scenario.start_time(self._rng))
        return coming

    def become_ready(self, replica: SimulatedReplica) -> None:
        """It has started."""
        self._move(replica, State.READY)

    @property
    def ordered(self) -> int:
        """Replicas that are ready or starting [1]."""
        return len(self._by_state[State.READY]) + len(self._by_state[State.STARTING])

    def fleet(self) -> Fleet:
        """Counts, and the law of starts as a platform would have measured it."""
        return Fleet(
            ready=len(self._by_state[State.READY]),
            starting=len(self._by_state[State.STARTING]),
            draining=len(self._by_state[State.DRAINING]),
            slots_per_replica=self._scenario.slots_per_replica,
            cold_start_mean=self._scenario.start_time_mean,
            cold_start_p90=self._scenario.start_time_p90,
        )

    def taken_back(self, count: int) -> list[SimulatedReplica]:
        """Turn up to `count` draining replicas ready again."""
        draining = list(self._by_state[State.DRAINING].values())[:count]
        for replica in draining:
            self._move(replica, State.READY)
        return draining

    def cancelled(self, count: int, now: float) -> int:
        """End up to `count` starting replicas, the latest first; return how many."""
        starting = sorted(self._by_state[State.STARTING].values(), key=lambda replica: -replica.ready_at)
        for replica in starting[:count]:
            self.end(replica, now)
        return min(count, len(starting))

    def drained(self, count: int, busy: Mapping[str, int]) -> list[SimulatedReplica]:
        """Turn the `count` least busy ready replicas to draining."""
        ready = sorted(self._by_state[State.READY].values(), key=lambda replica: busy.get(replica.id, 0))
        for replica in ready[:count]:
            self._move(replica, State.DRAINING)
        return ready[:count]

    def end(self, replica: SimulatedReplica, now: float) -> None:
        """Book what the replica cost, and forget it."""
        self._move(replica, State.ENDED)
        del self._by_state[State.ENDED][replica.id], self.replicas[replica.id]
        if replica.launched_at < inf:
            self._existing -= 1
            self._paid += now - replica.launched_at

    def replica_seconds(self, now: float) -> float:
        """What all replicas have cost so far, also those that live [s]."""
        return self._paid + sum(max(0.0, now - replica.launched_at) for replica in self.replicas.values())

    def _come_up(self, replica: SimulatedReplica, now: float, start_time: float) -> None:
        self._existing += 1
        replica.launched_at = now
        replica.ready_at = now + start_time
        replica.warm_at = replica.ready_at + self._scenario.warm_up

    def _move(self, replica: SimulatedReplica, state: State) -> None:
        del self._by_state[replica.state][replica.id]
        replica.state = state
        self._by_state[state][replica.id] = replica
