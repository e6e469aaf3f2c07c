"""One writer at a time: a lock file beside the history, held for the life of its writer.

The lock is the kernel's (flock), so it goes with the process however that ends, and nothing stale is
ever left to clean up. The file itself stays: removing it would let two processes lock two files of
the same name. It holds the pid of the writer, for the message that the second one prints.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from autoscaler.errors import HistoryLocked, UsageError


class HistoryLock:
    """Taken on construction, or HistoryLocked is raised."""

    def __init__(self, history: Path) -> None:
        self._history = history
        self._path = history.with_name(history.name + ".lock")
        self._descriptor = self._take()

    def renew(self) -> None:
        """Take it anew if its file was deleted or replaced. Raises HistoryLocked if somebody else has it."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                return
        taken = self._take()
        os.close(self._descriptor)
        self._descriptor = taken

    def release(self) -> None:
        """Let the next writer in."""
        os.close(self._descriptor)

    def _take(self) -> int:
        history = self._history
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(
                f"history {history}: the lock file {self._path.name} beside it cannot be opened "
                f"({error.strerror}). Make the folder writable, or name another history file."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise HistoryLocked(
                f"history {history}: in use by {f'process {holder}' if holder else 'another process'}, "
                f"which holds {self._path.name}. Stop that instance, or give this one another history file."
            ) from error
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor
