"""The driver of the control path: `loop` ticks, `actuation` is the platform, `fitting` fits beside it."""

from autoscaler.control_loop.loop import ControlLoop, ControlOptions, ControlState

__all__ = ["ControlLoop", "ControlOptions", "ControlState"]
