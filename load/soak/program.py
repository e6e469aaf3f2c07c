"""The product as `autoscaler run -c FILE` starts it, which also writes down how many tasks it has.

`python -m load.soak.program FILE TASKS_FILE`: the number of its asyncio tasks stands in TASKS_FILE, twice a
second anew. Nobody else can know it, and a leak of tasks shows there long before it shows in memory.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from autoscaler.cli.run import serve

_INTERVAL = 0.5  # [s]


async def _counted(main: Coroutine[Any, Any, None], path: Path) -> None:
    counting = asyncio.create_task(_count(path))
    try:
        await main
    finally:
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting


async def _count(path: Path) -> None:
    new = path.with_suffix(".new")
    while True:
        new.write_text(str(len(asyncio.all_tasks())))
        os.replace(new, path)  # noqa: PTH105 - of one kind with the line above; a reader sees one or the other
        await asyncio.sleep(_INTERVAL)


def main() -> None:
    """Serve until told to end."""
    configuration, tasks = Path(sys.argv[1]), Path(sys.argv[2])
    run: Any = uvloop.run

    def run_and_count(program: Coroutine[Any, Any, None]) -> None:
        run(_counted(program, tasks))

    setattr(uvloop, "run", run_and_count)  # noqa: B010 - by its type it takes anything else, too
    serve(configuration, "error")


if __name__ == "__main__":
    main()
