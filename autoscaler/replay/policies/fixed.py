"""A fleet of fixed size, to compare with."""

import numpy as np

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.scenario import Scenario

_ROUNDING = 1e-9
"""What is left of a division that comes out even is no replica [1]."""


class FixedPolicy:
    """As many replicas as were there at first, whatever happens."""

    interval: float | None = None

    def __init__(self, replicas: int) -> None:
        self.name = f"fixed {replicas}"

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> None:
        """Keep them."""


def peak_replicas(scenario: Scenario, utilization: float | None = None) -> int:
    """Replicas of which that share is busy in the busiest 5 minutes; by default the band's middle [1]."""
    per_window = max(1, round(300.0 / scenario.interval))
    padded = np.append(scenario.counts, np.zeros(-len(scenario.counts) % per_window))
    busiest = float(padded.reshape(-1, per_window).sum(axis=1).max()) / (per_window * scenario.interval)
    objective = scenario.objective
    middle = (objective.utilization_low + objective.utilization_high) / 2
    servers = busiest * scenario.service_time_mean / (utilization or middle)
    return max(1, int(np.ceil(servers / scenario.slots_per_replica - _ROUNDING)))
