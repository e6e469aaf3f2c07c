"""The command line: one file a command; `commands` declares them all.

Imported when asked for: what a sidecar becomes has a place here, and needs no command line.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autoscaler.cli.commands import main

__all__ = ["main"]


def __getattr__(name: str) -> Any:
    if name != "main":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from autoscaler.cli.commands import main  # noqa: PLC0415 - see the top of this file

    return main
