"""`autoscaler top`: the live view of a running program; one answer in plain lines where there is no terminal.

On a terminal who does not answer yet is waited for; whose first answer is not that of an admin listener is
never asked again, for a wrong address does not mend itself. A pipe or a log gets one answer, or why there is
none, and the command ends.
"""

import asyncio
import time

from rich.console import Console

from autoscaler.cli.admin_client import NoAnswer, ask, base_url, not_ours
from autoscaler.dashboard.terminal import plain_lines
from autoscaler.dashboard.watch import watch
from autoscaler.errors import AutoscalerError, UsageError
from autoscaler.telemetry.plain import decode
from autoscaler.telemetry.status import Status

_ASK_AGAIN = 1.0
"""Until somebody answers [s]."""


def watch_program(url: str, pool: str | None) -> None:
    """Show the program at `url` until Ctrl-C, or once where there is no terminal.

    Raises
    ------
    UsageError
        If `url` is none, or of something else than an admin listener, or there is no such pool.
    AutoscalerError
        If nobody answers, and there is no terminal to wait at.
    """
    base, console = base_url(url), Console()
    try:
        if console.is_terminal:
            _known(_first_status(base), base, pool)
            asyncio.run(watch(base, console, pool))
        else:
            _print_once(base, console, pool)
    except KeyboardInterrupt:  # the way to leave it
        return


def _print_once(base: str, console: Console, pool: str | None) -> None:
    try:
        status = _known(_status(base), base, pool)
    except NoAnswer as error:  # nothing to mend in what was typed
        raise AutoscalerError(str(error)) from error
    for line in plain_lines(status, pool):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _known(status: Status, base: str, pool: str | None) -> Status:
    """Return `status` if the pool that was asked for is in it."""
    pools = [each.name for each in status.pools]
    if pool is not None and pool not in pools:
        raise UsageError(f"--pool {pool}: not in the program at {base}; there is {', '.join(pools)}")
    return status


def _first_status(base: str) -> Status:
    told = ""
    while True:
        try:
            return _status(base)
        except NoAnswer as error:
            if str(error) != told:
                told = str(error)
                Console(stderr=True).print(f"{told} Asking again.", markup=False, soft_wrap=True)
            time.sleep(_ASK_AGAIN)


def _status(base: str) -> Status:
    try:
        return decode(ask(base, "/api/status"), Status)
    except ValueError as error:
        raise not_ours(base) from error
