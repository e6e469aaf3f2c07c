"""The one place where concrete things are chosen and joined."""

from autoscaler.app.program import run

__all__ = ["run"]
