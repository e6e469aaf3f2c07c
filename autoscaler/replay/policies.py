"""Who decides in a replay: this program's own controller, or a fleet of fixed size to compare with.

In production a fit runs in another process and is adopted when it is done; here time stands still while
it runs, so the controller gets it at once.
"""

import numpy as np

from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.replay.scenario import Scenario
from autoscaler.scaling import Controller, DecisionPolicy


class OwnPolicy:
    """The controller that runs in production, warmed with the history of the scenario."""

    name = "autoscaler"

    def __init__(
        self, scenario: Scenario, policy: DecisionPolicy | None = None, start_wall_time: float = 0.0
    ) -> None:
        self._controller = Controller(scenario.objective, policy)
        if len(scenario.history):
            self._controller.warm(scenario.history, scenario.history_interval, start_wall_time)

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> Decision:
        """Step the controller; fit whenever it asks for it."""
        job = self._controller.refit_due(now)
        if job is not None:
            self._controller.adopt(job(), now)
        return self._controller.step(observation, fleet, now)


class FixedPolicy:
    """As many replicas as were there at first, whatever happens."""

    def __init__(self, replicas: int) -> None:
        self.name = f"fixed {replicas}"

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> None:
        """Keep them."""


def peak_replicas(scenario: Scenario) -> int:
    """Replicas of a fixed fleet for the busiest 5 minutes of the demand, at the middle of the band [1]."""
    per_window = max(1, round(300.0 / scenario.interval))
    padded = np.append(scenario.counts, np.zeros(-len(scenario.counts) % per_window))
    busiest = float(padded.reshape(-1, per_window).sum(axis=1).max()) / (per_window * scenario.interval)
    objective = scenario.objective
    middle = (objective.utilization_low + objective.utilization_high) / 2
    servers = busiest * scenario.service_time_mean / middle
    return max(1, int(np.ceil(servers / scenario.slots_per_replica)))
