"""Work beside the control loop that should never end, and has: a fault of this program, and not silent."""

import asyncio
from collections.abc import Iterable


def fault_of(tasks: Iterable[asyncio.Task[None]]) -> str | None:
    """Return what ended one of the tasks, for a person; None if all go on, or ended as they should."""
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            return (
                f"a fault of this program ended {task.get_name()!r} ({error!r}); restart it, and report this"
            )
    return None
