"""Simulated replicas: they take a while to start, finish what they hold, and are paid for all along.

The rules are those of the local platform: what is starting is let go first, then what is idle, then
what is least busy; a draining replica is taken back before a new one is started.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autoscaler.domain import Fleet
from autoscaler.replay.scenario import Scenario


@dataclass(slots=True)
class SimulatedReplica:
    """One replica from launch to end; times in seconds."""

    id: str
    launched_at: float
    ready_at: float
    state: str  # starting, ready, draining


class SimulatedFleet:
    """All replicas of one pool. Returns what changed; the driver tells the dispatcher."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        self._scenario = scenario
        self._rng = rng
        self._serial = 0
        self.replicas: dict[str, SimulatedReplica] = {}
        self.replica_seconds = 0.0

    def launch(self, count: int, now: float, *, at_once: bool = False) -> list[SimulatedReplica]:
        """Start `count` replicas; each is ready at its `ready_at`."""
        mean, cv = self._scenario.cold_start_mean, self._scenario.cold_start_cv
        launched = []
        for _ in range(count):
            start = 0.0 if at_once else max(1.0, float(self._rng.normal(mean, cv * mean)))
            self._serial += 1
            replica = SimulatedReplica(f"r{self._serial}", now, now + start, "starting")
            self.replicas[replica.id] = replica
            launched.append(replica)
        return launched

    def count(self, state: str) -> int:
        """Replicas in a state [1]."""
        return sum(replica.state == state for replica in self.replicas.values())

    def fleet(self) -> Fleet:
        """Counts, and the law of starts as a platform would have measured it."""
        mean, cv = self._scenario.cold_start_mean, self._scenario.cold_start_cv
        return Fleet(
            ready=self.count("ready"),
            starting=self.count("starting"),
            draining=self.count("draining"),
            slots_per_replica=self._scenario.slots_per_replica,
            cold_start_mean=mean,
            cold_start_p90=mean * (1 + 1.2816 * cv),  # 0.9 quantile of the normal law
        )

    def taken_back(self, count: int) -> list[SimulatedReplica]:
        """Turn up to `count` draining replicas ready again."""
        draining = [r for r in self.replicas.values() if r.state == "draining"][:count]
        for replica in draining:
            replica.state = "ready"
        return draining

    def cancelled(self, count: int, now: float) -> int:
        """End up to `count` starting replicas, the latest first; return how many."""
        starting = sorted(
            (r for r in self.replicas.values() if r.state == "starting"), key=lambda r: -r.ready_at
        )
        for replica in starting[:count]:
            self.ended(replica.id, now)
        return min(count, len(starting))

    def drained(self, count: int, busy: Mapping[str, int]) -> list[SimulatedReplica]:
        """Turn the `count` least busy ready replicas to draining."""
        ready = sorted(
            (r for r in self.replicas.values() if r.state == "ready"), key=lambda r: busy.get(r.id, 0)
        )
        for replica in ready[:count]:
            replica.state = "draining"
        return ready[:count]

    def ended(self, replica_id: str, now: float) -> None:
        """Book what the replica cost, and forget it."""
        self.replica_seconds += now - self.replicas.pop(replica_id).launched_at
