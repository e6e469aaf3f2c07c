"""What the replicas of one place print: one file, and the one before it, both bounded.

The replica writes to the file itself, not through this program: so it goes on printing, and living, if
this program is killed. A file that grew too long is therefore copied aside and cut, not renamed.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

TAIL_BYTES = 8192
"""How far from its end a log is read [bytes]."""
TAIL_LINES = 10


class ReplicaLog:
    """The log of one place in the fleet."""

    def __init__(self, folder: Path, place: int, bytes_max: int) -> None:
        self.path = folder / f"replica-{place}.log"
        self._previous = folder / f"replica-{place}.log.1"
        self._bytes_max = bytes_max

    def open_fresh(self) -> int:
        """Set the present file aside and return a descriptor of an empty one, for a replica to write to."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            self.path.replace(self._previous)
        # Appending, so that a writer goes on at the new end after the file was cut.
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def cut_if_long(self) -> None:
        """Copy the file aside and empty it, if it is longer than it may be."""
        with suppress(OSError):  # somebody removed it
            if self.path.stat().st_size <= self._bytes_max:
                return
            with suppress(OSError):  # a full disk: then it is emptied all the more
                shutil.copyfile(self.path, self._previous)
            os.truncate(self.path, 0)

    def last_lines(self) -> list[str]:
        """Return the last lines, for an error that tells why a replica ended."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self.path.stat().st_size - TAIL_BYTES))
                return file.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
        except OSError:
            return []
