"""Runs the slow mathematics in a process of its own, one process a fit.

A fit takes a second or so, and the event loop that relays answers must not wait for it. A process for each
fit can be given a time limit and be killed, leaves nothing in memory, and yields to the model servers
(`nice`, one thread). The job goes in and its result comes out by pickle over pipes; both ends are this
program.

However many pools there are, their fits take turns; waiting for one's turn is not part of the time limit.
Should this program be killed, the child ends by itself when its time is up.
"""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Callable
from math import ceil
from typing import Any

from autoscaler.errors import AutoscalerError
from autoscaler.same_python import same_python

AT_ONCE = 1
"""Fits that run at the same time."""
_NICENESS = 10
_GRACE = 5
"""So much later than its time limit the child ends itself, if nobody did before [s]."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class FitFailed(AutoscalerError):
    """A fit ended without a result; whoever asked goes on with what it has."""


class FitProcesses:
    """Runs fits, `AT_ONCE` at a time; belongs to one event loop."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self, job: Callable[[], Any], time_limit: float) -> Any:
        """Call `job` in another process when it is its turn; as `run_fit`."""
        async with self._turns:
            return await run_fit(job, time_limit)


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
        If it took longer, broke, or could not be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *same_python(),
            "-m",
            "autoscaler.fit_process",
            str(ceil(time_limit) + _GRACE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD},
            start_new_session=True,  # a Ctrl-C in the terminal is ours to answer, not the fit's
        )
    except OSError as error:
        raise FitFailed(f"the fit could not be started ({error})") from error
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
        raise FitFailed(_ending(process.returncode, complaint))
    try:
        return pickle.loads(result)  # written by our own child
    except (pickle.UnpicklingError, EOFError) as error:
        raise FitFailed(f"the fit gave no result that can be read ({error})") from error


def _ending(returncode: int, complaint: bytes) -> str:
    if returncode < 0:
        return f"the fit was ended by {signal.Signals(-returncode).name}; is there enough memory?"
    last_line = complaint.decode(errors="replace").strip().rpartition("\n")[2]
    return f"the fit ended with exit code {returncode}: {last_line}"


def main() -> None:
    """Read a job from standard input, do it, write its result to standard output."""
    signal.alarm(int(sys.argv[1]))
    os.nice(_NICENESS)
    job = pickle.load(sys.stdin.buffer)  # written by our own parent
    # Libraries may print; the pipe is for the result alone.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as pipe:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        pickle.dump(job(), pipe)


if __name__ == "__main__":
    main()
