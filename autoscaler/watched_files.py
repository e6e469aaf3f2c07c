"""Notices that files were replaced: certificates that were renewed, keys that were added or taken away.

By looking at them every few seconds, for that works the same on every file system, and through the symbolic
links by which Kubernetes swaps the files of a secret. What has changed is told to whoever reads them; if that
fails, what was read before stays in force, the reason is logged, and the next change is tried again.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import structlog

from autoscaler.errors import UsageError

log = structlog.get_logger(__name__)

INTERVAL = 2.0
"""Time between two looks [s]."""

Signature = tuple[tuple[int, int, int] | None, ...]
"""Tells one state of files from another."""


class WatchedFiles:
    """Files that are read again when one of them changes.

    Parameters
    ----------
    paths : iterable of Path
        The files; they may be absent.
    read : callable
        Reads them; raises UsageError if they cannot be used.
    """

    def __init__(self, paths: Iterable[Path], read: Callable[[], object]) -> None:
        self._paths = tuple(paths)
        self._read = read
        self._seen = signature(self._paths)

    def look(self) -> bool:
        """Read them if they have changed since the last look; whether they were read."""
        now = signature(self._paths)
        if now == self._seen:
            return False
        self._seen = now
        names = ", ".join(map(str, self._paths))
        try:
            self._read()
        except UsageError as error:
            log.warning(
                "changed files cannot be used; what was read before goes on", files=names, why=str(error)
            )
            return False
        log.info("files have changed and were read", files=names)
        return True


async def look_now_and_then(watched: Sequence[WatchedFiles], interval: float = INTERVAL) -> None:
    """Look at all of them every `interval` [s], until cancelled."""
    while watched:
        await asyncio.sleep(interval)
        for files in watched:
            files.look()


def signature(paths: Iterable[Path]) -> Signature:
    """Return what tells one state of the files from another."""
    return tuple(map(_signature, paths))


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
