"""`autoscaler top`: the live view of a running program; plain lines where there is no terminal.

Who does not answer yet is waited for; whose first answer is not that of an admin listener is never asked
again, for a wrong address does not mend itself.
"""

import asyncio
import time

from rich.console import Console

from autoscaler.cli.admin_client import NoAnswer, ask, base_url, not_ours
from autoscaler.dashboard.watch import watch
from autoscaler.errors import UsageError
from autoscaler.telemetry.plain import decode
from autoscaler.telemetry.status import Status

_ASK_AGAIN = 1.0
"""Until somebody answers [s]."""


def watch_program(url: str, pool: str | None) -> None:
    """Show the program at `url` until Ctrl-C.

    Raises
    ------
    UsageError
        If `url` is none, or of something else than an admin listener, or there is no such pool.
    """
    base = base_url(url)
    try:
        pools = [each.name for each in _first_status(base).pools]
        if pool is not None and pool not in pools:
            raise UsageError(f"--pool {pool}: not in the program at {base}; there is {', '.join(pools)}")
        asyncio.run(watch(base, Console(), pool))
    except KeyboardInterrupt:  # the way to leave it
        return


def _first_status(base: str) -> Status:
    told = ""
    while True:
        try:
            return decode(ask(base, "/api/status"), Status)
        except NoAnswer as error:
            if str(error) != told:
                told = str(error)
                Console(stderr=True).print(f"{told} Asking again.", markup=False, soft_wrap=True)
            time.sleep(_ASK_AGAIN)
        except ValueError as error:
            raise not_ours(base) from error
