"""The control path, pure: a file a step, and `controller` that calls them in order."""

from autoscaler.scaling.controller import Controller
from autoscaler.scaling.options import DecisionPolicy

__all__ = ["Controller", "DecisionPolicy"]
