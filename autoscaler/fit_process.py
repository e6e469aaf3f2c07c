"""Runs the slow mathematics in a process of its own, one process a fit.

A fit takes a second or so, and the event loop that relays answers must not wait for it. A process for each
fit can be given a time limit and be killed, leaves nothing in memory, and yields to the model servers
(`nice`). The job goes in and its result comes out by pickle over pipes; both ends are this program.
"""

import asyncio
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from autoscaler.errors import AutoscalerError

_NICENESS = 10


class FitFailed(AutoscalerError):
    """A fit ended without a result; whoever asked goes on with what it has."""


async def run_fit(job: Callable[[], Any], time_limit: float) -> Any:
    """Call `job` in another process and return what it returns.

    Parameters
    ----------
    job : callable
        Picklable, without arguments.
    time_limit : float
        The process is killed after this [s].

    Raises
    ------
    FitFailed
        If it took longer, or broke.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "autoscaler.fit_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C in the terminal is ours to answer, not the fit's
    )
    try:
        async with asyncio.timeout(time_limit):
            result, complaint = await process.communicate(pickle.dumps(job))
    except TimeoutError as error:
        raise FitFailed(f"the fit took longer than {time_limit:g} s and was ended") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last_line = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise FitFailed(f"the fit ended with exit code {process.returncode}: {last_line}")
    return pickle.loads(result)  # written by our own child


def main() -> None:
    """Read a job from standard input, do it, write its result to standard output."""
    os.nice(_NICENESS)
    job = pickle.load(sys.stdin.buffer)  # written by our own parent
    # Libraries may print; the pipe is for the result alone.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as pipe:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        pickle.dump(job(), pipe)


if __name__ == "__main__":
    main()
