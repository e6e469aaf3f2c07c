"""The nouns: request, observation, fleet, objective, decision. Frozen values, no behaviour beyond checks."""

from autoscaler.domain.decision import Binding, Decision, Hold, Numbers, Reason, ScaleTo
from autoscaler.domain.fleet import Fleet
from autoscaler.domain.objective import Objective
from autoscaler.domain.observation import Observation
from autoscaler.domain.request import STANDARD, DropReason, Mergeable, Outcome, Request
from autoscaler.domain.token_use import TokenUse

__all__ = [
    "STANDARD",
    "Binding",
    "Decision",
    "DropReason",
    "Fleet",
    "Hold",
    "Mergeable",
    "Numbers",
    "Objective",
    "Observation",
    "Outcome",
    "Reason",
    "Request",
    "ScaleTo",
    "TokenUse",
]
