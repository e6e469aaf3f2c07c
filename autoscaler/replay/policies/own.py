"""The controller that runs in production.

There a fit runs in another process and is adopted when it is done; here time stands still while
it runs, so the controller gets it at once.
"""

from dataclasses import replace

from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.replay.scenario import Scenario
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.options import WAKE_DELAY


class OwnPolicy:
    """The controller that runs in production, warmed with the history of the scenario."""

    name = "autoscaler"
    interval: float | None = None
    wake_delay = WAKE_DELAY

    def __init__(
        self, scenario: Scenario, policy: DecisionPolicy | None = None, start_wall_time: float = 0.0
    ) -> None:
        self._controller = Controller(scenario.objective, policy)
        self._asked: int | None = None
        if len(scenario.history):
            self._controller.warm(scenario.history, scenario.history_interval, start_wall_time)

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> Decision:
        """Step the controller; fit whenever it asks for it."""
        job = self._controller.refit_due(now)
        if job is not None:
            self._controller.adopt(job(), now)
        decision = self._controller.step(observation, replace(fleet, asked=self._asked), now)
        self._asked = decision.desired
        return decision
