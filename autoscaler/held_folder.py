"""A folder that one program holds at a time: whoever acts on a pool holds the folder of its state.

The lock is the kernel's (flock), so it goes with the process however that ends, and nothing stale is left.
"""

import fcntl
import os
from pathlib import Path

from autoscaler.errors import UsageError


class HeldFolder:
    """The folder at `path`; held from `take` to `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None

    def take(self) -> None:
        """Take hold of it. Raises UsageError if another program holds it, or it cannot be written."""
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(
                f"state folder {self._path} cannot be used ({error.strerror}); name one you can write to"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise UsageError(
                f"state folder {self._path} is in use by another instance; end it or name another folder"
            ) from error

    def release(self) -> None:
        """Let go of it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
