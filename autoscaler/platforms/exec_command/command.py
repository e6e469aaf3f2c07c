"""Runs one command to its end, with bounds: of time, of what it prints, and of what it leaves behind.

The command leads a process group of its own. If it takes too long, or this program ends, the whole group is
ended: asked first, then killed. What it printed is read up to a limit, and the rest thrown away. Once it has
exited nobody waits for its output any more, so what it left running on purpose does not hold it up; that must
print somewhere else, for the pipe is closed then.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autoscaler.errors import PlatformUnavailable

TRY_LATER = 75
"""Exit code of a command that cannot do it now and asks to be run again: EX_TEMPFAIL of sysexits.h."""

_ERRORS_BYTES_MAX = 4096
_KILL_AFTER = 2.0
"""From SIGTERM to SIGKILL [s]."""
_LAST_WORDS = 0.5
"""What was printed may still be in the pipe for so long after the exit [s]."""
_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    """Its exit code; minus the number of the signal that ended it."""
    output: bytes
    """What it printed, up to the limit and one byte more."""
    errors: str
    """The last line of what it said on standard error."""


async def run_command(
    words: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path | None,
    time_limit: float,
    output_bytes_max: int,
) -> Ran:
    """Run a command; return how it ended.

    Raises
    ------
    PlatformUnavailable
        If it cannot be started, or did not end within `time_limit` [s].
    """
    async with _Pipe(output_bytes_max + 1, keeps_end=False) as out, _Pipe(_ERRORS_BYTES_MAX, True) as err:
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out.write_end,
                stderr=err.write_end,
                env=dict(environment),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise PlatformUnavailable(f"{words[0]} cannot be started: {error}") from error
        out.close_write_end()
        err.close_write_end()
        try:
            async with asyncio.timeout(time_limit):
                code = await process.wait()
        except TimeoutError as error:
            await _end_group(process)
            raise PlatformUnavailable(
                f"{words[0]} did not end within {time_limit:g} s and was ended"
            ) from error
        except asyncio.CancelledError:
            await asyncio.shield(_end_group(process))
            raise
        await out.finished(_LAST_WORDS)
        await err.finished(_LAST_WORDS)
        return Ran(code, bytes(out.content), _last_line(bytes(err.content)))


class _Pipe:
    """One way out of the command, read all the time so that the command never blocks on it."""

    def __init__(self, limit: int, keeps_end: bool) -> None:
        self._limit, self._keeps_end = limit, keeps_end
        self.content = bytearray()
        self.write_end = -1

    async def __aenter__(self) -> "_Pipe":
        try:
            read_end, self.write_end = os.pipe()
        except OSError as error:
            raise PlatformUnavailable(
                f"no command can be started: {error.strerror}; permit more open files (ulimit -n)"
            ) from error
        stream = asyncio.StreamReader()
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(read_end, "rb", 0)
        )
        self._reading = asyncio.create_task(self._read(stream))
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close_write_end()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._transport.close()

    def close_write_end(self) -> None:
        """Leave it to the command alone."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def finished(self, patience: float) -> None:
        """Wait until nobody can write any more, for `patience` [s] at most."""
        await asyncio.wait([self._reading], timeout=patience)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(_PIECE):
            if self._keeps_end:
                self.content += piece
                del self.content[: -self._limit]
            else:
                self.content += piece[: max(0, self._limit - len(self.content))]


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End the command and all that it started in its group."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_AFTER):
                await process.wait()
            # The leader is gone; what it started may have stayed and is not asked twice.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            return


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return "".join(filter(str.isprintable, lines[-1]))[-500:].strip() if lines else ""
