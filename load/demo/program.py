"""The product, run beside the demo as a user runs it: `autoscaler run -c FILE`.

It leads a process group of its own, so that Ctrl-C reaches the demo only, which then ends it in order.
Whatever should be left of its replicas after that is ended here: a demo leaves nothing behind. Should the
demo itself be killed, the kernel tells the program to end (Linux only), and that ends its replicas.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import psutil
import yaml

STOPS_WITHIN = 20.0  # [s]
LOG_LINES = 15  # shown when it fails
_PR_SET_PDEATHSIG = 1


class ProgramFailed(Exception):
    """It did not start, or ended; the text has the end of its log."""


class Program:
    """`async with Program(…)`: started inside, gone outside.

    Parameters
    ----------
    configuration : dict
        Written as YAML into `folder`.
    folder : Path
        Where the program may write; the caller removes it.
    cwd : Path
        Where the program runs.
    arguments : sequence of str, optional
        For Python, instead of those that run `autoscaler run -c FILE`; FILE is `autoscaler.yaml` in `folder`.
    """

    def __init__(
        self, configuration: dict[str, Any], folder: Path, cwd: Path, arguments: Sequence[str] = ()
    ) -> None:
        self.url = f"http://{configuration['listen']}"
        self.admin = f"http://{configuration['admin']}"
        self.history = Path(configuration["history"])
        self._file = folder / "autoscaler.yaml"
        self._file.write_text(yaml.safe_dump(configuration, sort_keys=False))
        self._arguments = arguments or ("-m", "autoscaler", "run", "-c", str(self._file))
        self._log = folder / "autoscaler.log"
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._arguments,
                cwd=self._cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def pid(self) -> int:
        """Of the process, which was started."""
        if self._process is None:
            raise RuntimeError("the program was not started yet")
        return self._process.pid

    async def stop(self) -> None:
        """End it in order, by force if that takes too long; and what is left of its replicas."""
        process = self._process
        if process is None:
            return
        family = _descendants(process.pid)
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOPS_WITHIN):
                await process.wait()
        except TimeoutError:
            family += _descendants(process.pid)
            process.kill()
            await process.wait()
        for left in family:
            with suppress(psutil.NoSuchProcess):  # psutil compares start times: never somebody else's pid
                left.kill()

    async def ended(self) -> None:
        """Wait until it ends, which it should not: raises ProgramFailed."""
        if self._process is not None:
            code = await self._process.wait()
            raise ProgramFailed(f"autoscaler ended with exit code {code}; its log ends:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Return the end of what it printed."""
        lines = self._log.read_text(errors="replace").splitlines()
        return os.linesep.join(lines[-LOG_LINES:])

    async def ready(self) -> None:
        """Wait until it says that it takes requests."""
        async with aiohttp.ClientSession() as session:
            while not await _says_ok(session, f"{self.admin}/readyz"):  # noqa: ASYNC110 - it must be asked
                await asyncio.sleep(0.1)


def end_with_parent() -> None:
    """Ask the kernel, in the child, for a SIGTERM when its parent dies: prctl(2)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def _says_ok(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, OSError):
        return False


def _descendants(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []
