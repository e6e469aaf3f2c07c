"""What every policy is to the engine."""

from typing import Protocol, runtime_checkable

from autoscaler.domain import Decision, Fleet, Observation


class Policy(Protocol):
    """Decides how many replicas there shall be.

    Attributes
    ----------
    name : str
        As it stands in tables, with its target: "hpa 0.70".
    interval : float or None
        Between its decisions [s]; None takes the control interval of the scenario. Each observation covers
        the time since the one before.
    """

    name: str
    interval: float | None

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> Decision | int | None:
        """Replicas wanted (ready and starting), a decision that says so, or None to keep them."""


@runtime_checkable
class WokenByArrivals(Protocol):
    """A policy that also decides soon after an arrival that finds no replica, and none on its way.

    Attributes
    ----------
    wake_delay : float
        From such an arrival to the decision [s].
    """

    wake_delay: float
