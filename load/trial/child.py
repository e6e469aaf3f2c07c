"""One process of the trial: started, troubled, ended."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from load.demo.program import LOG_LINES, end_with_parent

ROOT = Path(__file__).parents[2]
_ENDS_WITHIN = 20.0
"""After SIGTERM; then it is killed [s]."""


class Child:
    """Used as a context: started inside, gone outside. May be started anew after it has ended.

    Parameters
    ----------
    name : str
        For people.
    words : sequence of str
        The command.
    log : Path
        What it prints is added to this file.
    """

    def __init__(self, name: str, words: Sequence[str], log: Path) -> None:
        self.name = name
        self._words, self._log = tuple(words), log
        self._process: asyncio.subprocess.Process | None = None

    def __repr__(self) -> str:
        return f"<Child {self.name} lives={self.lives}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    @property
    def lives(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it; it does its work a moment later."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,
            )

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, if it lives."""
        if self._process is not None and self.lives:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def kill(self) -> None:
        """End it without a word."""
        self.send(signal.SIGKILL)
        await self.ended()

    async def end(self) -> None:
        """End it in order, by force if that takes too long."""
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(_ENDS_WITHIN):
                await self.ended()
        except TimeoutError:
            await self.kill()

    async def ended(self) -> int:
        """Wait until it has ended; return its exit code, 0 if it was never started."""
        return 0 if self._process is None else await self._process.wait()

    def log_tail(self) -> str:
        """Return the end of what it printed; empty if it was never started."""
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        return os.linesep.join(said.splitlines()[-LOG_LINES:])
