"""Leadership among the programs of one machine: who holds the lock of a file leads.

The lock is the kernel's (flock), so it goes with the process however that ends, and nothing stale is left.
The file stays and holds the pid of the leader, for people. If it is deleted or replaced another process could
lock the file that then has the name, so whoever holds a file of no name leads no more, and seeks anew.

The folder must be of this machine: locks of network file systems may outlive, or forget, who holds them.
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import structlog

_LOOK_INTERVAL = 1.0
"""Between two attempts to lock, and two looks at whether the locked file still has its name [s]."""

log = structlog.get_logger(__name__)


class FileLeadership:
    """Leads while it holds the lock of the file at `path`; implements `ports.Leadership`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._locked: int | None = None
        self._trouble: str | None = None

    def __repr__(self) -> str:
        return f"<FileLeadership {self._path} is_leader={self.is_leader}>"

    @property
    def is_leader(self) -> bool:
        """Whether the lock is held, of the file that has the name now."""
        if self._locked is None:
            return False
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._locked), self._path.stat())
        return False

    @property
    def leader(self) -> str | None:
        """The process that holds the lock, as it has written."""
        if self.is_leader:
            return "this program"
        with suppress(OSError):
            if pid := self._path.read_bytes()[:32].decode(errors="replace").strip():
                return f"process {pid}"
        return None

    async def run(self) -> None:
        """Seek the lock and hold it until cancelled."""
        try:
            while True:
                if not self.is_leader:
                    self._let_go()
                    self._seek()
                await asyncio.sleep(_LOOK_INTERVAL)
        finally:
            self._let_go()

    def _seek(self) -> None:
        """Take the lock if nobody has it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            self._tell(
                f"{self._path} cannot be opened ({error.strerror}); "
                "make its folder writable, and the file itself if it is there"
            )
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            self._tell(f"{self.leader or 'another process'} holds the lock {self._path}")
            return
        except OSError as error:
            os.close(descriptor)
            self._tell(f"{self._path} cannot be locked ({error.strerror}); put it on a disk of this machine")
            return
        with suppress(OSError):  # a full disk keeps nobody from leading
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._locked, self._trouble = descriptor, None
        log.info("leads from now on", lock=str(self._path))

    def _let_go(self) -> None:
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None
            log.info("leads no more", lock=str(self._path))

    def _tell(self, why: str) -> None:
        """Say why this one does not lead, once for each reason."""
        if why != self._trouble:
            log.info("does not lead; ready to take over", why=why)
        self._trouble = why
