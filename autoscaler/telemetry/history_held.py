"""The file of a history while a program writes to it: somebody may delete it, replace it, or write into it.

SQLite would not notice: it goes on in a file that has lost its name, or builds on pages that are not its
own. So before each commit the file of this name is compared with the one that was opened, which takes a
look at its `stat`, no more. Only if it was changed from outside is it examined:

- gone, or another one: what has that name is opened, or made;
- damaged: it is set aside under another name, with its companions, and a new one is made;
- whole (a backup tool has folded the WAL into it, say): all is well.

Nothing is deleted, and what happened is logged once. What is not committed yet goes into the new file.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from autoscaler.errors import UsageError
from autoscaler.telemetry.history_file import (
    COMPANIONS,
    examine,
    is_damaged,
    make_folder,
    open_for_writing,
    set_aside,
)
from autoscaler.telemetry.history_lock import HistoryLock

_log = structlog.get_logger(__name__)


class _Look(NamedTuple):
    """What `stat` says of the file and its WAL; a WAL keeps its place on the disk while it is in use."""

    inode: int
    size: int
    modified: int
    wal_inode: int | None


class HeldHistory:
    """The lock of a history and the one connection that writes to it.

    Raises
    ------
    HistoryLocked
        On construction, if another instance writes to `path`.
    UsageError
        On construction, if `path` cannot be a history; what is there is left as it is.
    """

    def __init__(self, path: Path) -> None:
        make_folder(path)
        self._path = path
        self._lock = HistoryLock(path)
        self.before_change: Callable[[], None] = lambda: None
        """Called before another file takes the place of this one: whoever reads it must let go of it."""
        try:
            self._connection: sqlite3.Connection | None = open_for_writing(path)
            self._seen = _look(path)
        except BaseException:
            self.release()
            raise

    def connection(self) -> sqlite3.Connection:
        """Return the connection to the file that has the name now; it may be a new one.

        Raises
        ------
        sqlite3.Error, OSError, UsageError
            If there is none at present: ask again later.
        """
        if self._connection is not None:
            finding = self._finding(self._connection)
            if finding is None:
                return self._connection
            _log.error(
                "history was tampered with; it goes on in the file of its name",
                path=str(self._path),
                found=finding,
            )
            self._let_go()
        make_folder(self._path)
        self._lock.renew()
        self._connection = self._open()
        self._seen = _look(self._path)
        return self._connection

    def committed(self) -> None:
        """Remember the file as it is after a commit."""
        self._seen = _look(self._path)

    def discard(self, damage: Exception) -> None:
        """Set the file aside; the next `connection` is to a new one. Raises OSError if it cannot be."""
        self._set_aside(damage)
        self._let_go()

    def close(self) -> None:
        """Let go of the file, not of its lock."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def release(self) -> None:
        """Let the next writer in."""
        self._lock.release()

    def _finding(self, connection: sqlite3.Connection) -> str | None:
        """Say what has become of the file; None if it can be written on. What is in the way is set aside."""
        seen, look = self._seen, _look(self._path)
        if look == seen and look is not None:
            return None
        if look is None:
            set_aside(self._path, COMPANIONS)
            return "it was deleted"
        if seen is None or look.inode != seen.inode:
            if seen is None or look.wal_inode == seen.wal_inode:  # else it brought its own
                set_aside(self._path, COMPANIONS)
            return "it was replaced by another file"
        if look.wal_inode != seen.wal_inode:
            connection.execute("PRAGMA wal_checkpoint")  # all that was in there is in the file now
            return "its -wal was deleted"
        return self._damage(look)

    def _damage(self, look: _Look) -> str | None:
        try:
            if look.size == 0:  # to open it so would make SQLite remove its WAL
                raise UsageError("it was emptied")
            examine(self._path)
        except UsageError as error:
            if not is_damaged(error):
                raise
            self._set_aside(error)
            return "it was written into"
        self._seen = look
        return None

    def _open(self) -> sqlite3.Connection:
        try:
            return open_for_writing(self._path)
        except UsageError as error:
            if not (is_damaged(error) or self._path.is_dir()):
                raise
            self._set_aside(error)
            return open_for_writing(self._path)

    def _set_aside(self, damage: Exception) -> None:
        aside = set_aside(self._path)
        _log.error(
            "history is damaged and was set aside; a new one is begun",
            path=str(self._path),
            kept_as=aside.name,
            damage=str(damage),
        )

    def _let_go(self) -> None:
        self.before_change()
        self.close()


def _look(path: Path) -> _Look | None:
    """Return how the file is now; None if there is none."""
    try:
        file = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        wal_inode = path.with_name(path.name + COMPANIONS[0]).stat().st_ino
    except FileNotFoundError:
        wal_inode = None
    return _Look(file.st_ino, file.st_size, file.st_mtime_ns, wal_inode)
