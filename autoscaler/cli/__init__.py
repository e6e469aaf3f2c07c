"""The command line: one file a command; `commands` declares them all."""

from autoscaler.cli.commands import main

__all__ = ["main"]
