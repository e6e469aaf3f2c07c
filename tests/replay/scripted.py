"""Scenarios told request by request, policies told order by order, and steady demand to test theory with."""

import numpy as np

from autoscaler.domain import Fleet, Objective, Observation
from autoscaler.replay.scenario import Scenario


def scripted(arrivals, needs, duration: float = 60.0, **circumstances) -> Scenario:
    """Return a scenario of `duration` [s] whose requests come at these times and need this work."""

    class Scripted(Scenario):
        def arrival_times(self, rng):
            return np.array(arrivals, dtype=float)

        def work(self, n_requests, rng):
            return np.array(needs, dtype=float)

    circumstances = {"service_time_mean": 1.0} | circumstances
    return Scripted(np.zeros(round(duration / 10.0)), 10.0, **circumstances)


class Orders:
    """Wants so many replicas from each of these times on; remembers what it was shown."""

    name = "orders"

    def __init__(self, orders: dict[float, int] | None = None, interval: float | None = None) -> None:
        self.interval = interval
        self._orders = orders or {}
        self.seen: list[tuple[float, Observation, Fleet]] = []

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int | None:
        self.seen.append((now, observation, fleet))
        due = [wanted for at, wanted in self._orders.items() if at <= now]
        return due[-1] if due else None


def steady(rate: float, n_requests: int, **circumstances) -> Scenario:
    """Return Poisson demand: so many arrivals a second, about so many in all. No wait is too long."""
    circumstances = {"objective": Objective(wait_seconds=1e6)} | circumstances
    counts = np.random.default_rng(99).poisson(rate, round(n_requests / rate))
    return Scenario(counts.astype(float), 1.0, **circumstances)
