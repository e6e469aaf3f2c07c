"""What the replicas of one place print: one file, and the one before it, both bounded.

The replica writes to the file itself, not through this program: so it goes on printing, and living, if
this program is killed. A file that grew too long is therefore cut, its end copied aside, not renamed.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

LOOK_INTERVAL = 1.0
"""Between two looks at the length of a file that is written to [s]."""
HASTE = 10
"""So many times as often it is looked at while each look finds it too long [1]."""
COPY_BYTES = 2**20
"""How much is copied at a time [bytes]."""

TAIL_BYTES = 8192
"""How far from its end a log is read [bytes]."""
TAIL_LINES = 10


class ReplicaLog:
    """The log of one place in the fleet."""

    def __init__(self, folder: Path, place: int, bytes_max: int) -> None:
        self.path = folder / f"replica-{place}.log"
        self._previous = folder / f"replica-{place}.log.1"
        self._bytes_max = bytes_max
        self._cutting = threading.Lock()

    def open_fresh(self) -> int:
        """Set the present file aside and return a descriptor of an empty one, for a replica to write to."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.cut_if_long()
        if self.path.exists() and self.path.stat().st_size:  # an empty one was cut: its end is aside already
            self.path.replace(self._previous)
        # Appending, so that a writer goes on at the new end after the file was cut.
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    @asynccontextmanager
    async def kept_short(self) -> AsyncIterator[None]:
        """Cut the file whenever it is too long, for as long as something may write to it."""
        looking = asyncio.create_task(self._look_now_and_then())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.to_thread(self.cut_if_long)

    def cut_if_long(self) -> bool:
        """Copy the end of the file aside and empty it, if it is too long; return whether it was."""
        with self._cutting, suppress(OSError):  # somebody removed it
            length = self.path.stat().st_size
            if length <= self._bytes_max:
                return False
            with suppress(OSError):  # a full disk: then it is emptied all the more
                self._copy_end(length)
            os.truncate(self.path, 0)
            return True
        return False

    async def _look_now_and_then(self) -> None:
        was_long = False
        while True:
            await asyncio.sleep(LOOK_INTERVAL / HASTE if was_long else LOOK_INTERVAL)
            was_long = await asyncio.to_thread(self.cut_if_long)

    def _copy_end(self, length: int) -> None:
        # So much and no more: whoever reads to the end of a file that grows may never get there.
        left = self._bytes_max
        with self.path.open("rb") as file, self._previous.open("wb") as aside:
            file.seek(length - left)
            while left and (part := file.read(min(left, COPY_BYTES))):
                aside.write(part)
                left -= len(part)

    def last_lines(self) -> list[str]:
        """Return the last lines, for an error that tells why a replica ended."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self.path.stat().st_size - TAIL_BYTES))
                return file.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
        except OSError:
            return []
