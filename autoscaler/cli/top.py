"""`autoscaler top`: the live view of a running program; plain lines where there is no terminal."""

import asyncio

from rich.console import Console

from autoscaler.cli.admin_client import base_url
from autoscaler.dashboard.watch import watch


def watch_program(url: str, pool: str | None) -> None:
    """Show the program at `url` until Ctrl-C. Raises UsageError if `url` is none."""
    try:
        asyncio.run(watch(base_url(url), Console(), pool))
    except KeyboardInterrupt:  # the way to leave it
        return
