"""The control path, pure: a file a step, and `controller` that calls them in order.

Imported when asked for: a program that observes and does not decide needs none of its mathematics.
"""

from typing import TYPE_CHECKING, Any

from autoscaler.scaling.options import DecisionPolicy

if TYPE_CHECKING:
    from autoscaler.scaling.controller import Controller

__all__ = ["Controller", "DecisionPolicy"]


def __getattr__(name: str) -> Any:
    if name != "Controller":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from autoscaler.scaling.controller import Controller  # noqa: PLC0415 - see the top of this file

    return Controller
