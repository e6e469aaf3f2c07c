"""One line of JSON a request, in a file that cannot fill a disk.

Three bounds: of the requests that went well a sample is written, no more than so many lines a second, and the
file is rotated by its size with so many old ones kept. What was left out for the second bound is counted in
the next line. A thread writes, so that a slow disk slows no request; while it is behind, lines are left out.
"""

import logging
import queue
import random
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

import msgspec

from autoscaler.errors import UsageError
from autoscaler.proxy.quiet_log import QuietLog

_WAITING_MAX = 10_000
"""Lines that wait for the disk [1]."""

_CLOSING = 2.0
"""So long the last lines may take to be written [s]."""

CLIENT_LEFT = 499
"""The status of a request whose client did not wait for it; nobody is sent it."""


@dataclass(frozen=True, slots=True)
class AccessLogOptions:
    """Where the lines go, and how many."""

    path: Path | None = None
    """The file; None for no access log."""
    sample: float = 1.0
    """The fraction written of the requests that went well [0..1]; failures are all written."""
    lines_per_second: float = 200.0
    """No more than this [1/s], failures included."""
    file_bytes_max: int = 64 * 2**20
    """A file that has grown to this is put aside [bytes]."""
    files_max: int = 4
    """So many are kept, the one that is written included [1]; older ones are deleted."""

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= 1:
            raise ValueError(f"need sample in 0..1, got {self.sample}")
        if self.lines_per_second <= 0:
            raise ValueError(f"need lines_per_second > 0, got {self.lines_per_second}")
        if self.file_bytes_max < 1:
            raise ValueError(f"need file_bytes_max >= 1, got {self.file_bytes_max}")
        if self.files_max < 2:
            raise ValueError(f"need files_max >= 2 (one is written, one is put aside), got {self.files_max}")


@dataclass(frozen=True, slots=True)
class AccessLine:
    """What is written of one request."""

    time: float
    """When it ended [s since the epoch, UTC]."""
    id: str
    method: str
    path: str
    """Without its query, which may hold secrets."""
    status: int
    """Of a call over gRPC, the one that says the same."""
    code: str
    """`ok`; the code of the refusal; or `client_left`. What a server said over gRPC by its name there."""
    pool: str
    priority_class: str
    tenant: str
    replica: str
    queue_seconds: float
    service_seconds: float
    total_seconds: float
    sent_bytes: int
    """Of the answer, with its head; over gRPC of its messages [bytes]."""
    grpc_status: str = ""
    """Name of the code that a call over gRPC ended with; empty for HTTP."""


_WENT_WRONG = 400
"""From this status on every request is noted."""


class _File(RotatingFileHandler):
    """Says seldom that the disk takes nothing."""

    _failures = QuietLog(logging.getLogger("autoscaler.proxy"), interval=60.0)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        self._failures.warning("the access log cannot be written: %s", sys.exception())


class AccessLog:
    """Writes the lines. Closed by `close`.

    Raises
    ------
    UsageError
        If the file cannot be opened.
    """

    def __init__(self, options: AccessLogOptions) -> None:
        self._options = options
        self._random = random.Random()
        self._left_out = 0
        self._tokens, self._refilled_at = options.lines_per_second, 0.0
        self._lines: queue.Queue[bytes | None] = queue.Queue(_WAITING_MAX)
        self._thread: threading.Thread | None = None
        if options.path is not None:
            file = _opened(options.path, options)
            self._thread = threading.Thread(target=self._write, args=(file,), name="access log", daemon=True)
            self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether anything is written at all."""
        return self._thread is not None

    def wants(self, status: int) -> bool:
        """Whether a request that ended with this HTTP status shall be noted: of good ones a sample is."""
        if self._thread is None:
            return False
        return status >= _WENT_WRONG or self._random.random() < self._options.sample

    def note(self, line: AccessLine) -> None:
        """Write the line of a request that is wanted, unless there are too many; returns at once."""
        if self._thread is None:
            return
        if not self._may_write(line.time):
            self._left_out += 1
            return
        said = asdict(line)
        if self._left_out:
            said["left_out"] = self._left_out
        try:
            self._lines.put_nowait(msgspec.json.encode(said))
            self._left_out = 0
        except queue.Full:
            self._left_out += 1

    def close(self) -> None:
        """Write what waits, for a moment at most."""
        if self._thread is not None:
            with suppress(queue.Full):
                self._lines.put(None, timeout=_CLOSING)
            self._thread.join(_CLOSING)
            self._thread = None

    def _may_write(self, now: float) -> bool:
        rate = self._options.lines_per_second
        passed = max(0.0, now - self._refilled_at)
        self._tokens, self._refilled_at = min(max(rate, 1.0), self._tokens + passed * rate), now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _write(self, file: _File) -> None:
        while (line := self._lines.get()) is not None:
            file.emit(logging.LogRecord("access", logging.INFO, "", 0, line.decode(), None, None))
        file.close()


def _opened(path: Path, options: AccessLogOptions) -> _File:
    kept = options.files_max - 1
    try:
        return _File(path, maxBytes=options.file_bytes_max, backupCount=kept, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the access log {path} cannot be written: {error.strerror or error}; "
            "set http.access_log to a file in a folder that this user may write"
        ) from error
