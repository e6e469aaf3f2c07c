"""The history as a file: its schema, how it is opened, and how a file that is none is told apart.

SQLite in WAL mode: readers do not hinder the writer, each commit is whole or absent after a kill at
any moment. `application_id` marks the file as ours and `user_version` numbers the schema; both are
set in the transaction that makes the tables. A file that is not ours is never written to.

This process must not open the file but through SQLite: closing any other descriptor of it would drop the
locks of SQLite, by the rules of POSIX. To look at it, `os.stat` is allowed.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import structlog

from autoscaler.errors import UsageError

_log = structlog.get_logger(__name__)

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x41536331  # "ASc1"
_PRIMARY = 0xFF
"""The part of an error code of SQLite that is not its details."""
_BUSY_TIMEOUT = 5.0
"""How long one statement waits for another process, such as a backup, to let go of the file [s]."""

COMPANIONS = ("-wal", "-shm")
"""What SQLite keeps beside the file while it is open: commits not in it yet, and their index."""

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE intervals (
    pool TEXT NOT NULL,
    start_wall REAL NOT NULL,  -- seconds since the epoch, UTC
    interval REAL NOT NULL,    -- seconds; longer once rolled up
    arrivals INTEGER NOT NULL,
    completions INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    service_time_sum REAL,
    service_time_square_sum REAL,
    busy_slots_mean REAL,
    in_flight INTEGER NOT NULL,
    queue_depth INTEGER NOT NULL,
    oldest_wait REAL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    rolled_up INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (pool, start_wall)
) WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    pool TEXT NOT NULL,
    wall_time REAL NOT NULL,
    now REAL NOT NULL,
    kind TEXT NOT NULL,        -- scale_to or hold
    observation TEXT,          -- JSON; NULL if no measurement came
    fleet TEXT NOT NULL,       -- JSON
    decision TEXT NOT NULL     -- JSON
);
CREATE INDEX decisions_by_pool ON decisions (pool);
CREATE INDEX decisions_by_age ON decisions (kind, wall_time);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

# Files made before there were states get this table when they are next opened for writing. The number of the
# schema stays: programs of both kinds read and write both kinds of file.
_STATES_SCHEMA = """
CREATE TABLE IF NOT EXISTS controller_states (
    id INTEGER PRIMARY KEY,
    pool TEXT NOT NULL,
    wall_time REAL NOT NULL,   -- of the step that it stands before (checkpoint) or behind (adopted)
    now REAL NOT NULL,         -- of the same
    kind TEXT NOT NULL,        -- checkpoint: the whole controller; adopted: a fit
    version TEXT NOT NULL,     -- of the program that wrote it
    state BLOB NOT NULL        -- see state_codec
);
CREATE INDEX IF NOT EXISTS controller_states_by_age ON controller_states (pool, kind, wall_time);
"""


class RecordedInterval(NamedTuple):
    """One row of `intervals`: where it began, and what `Observation` says of it.

    A row that was rolled up is up to an hour long. None stands for a number that was not known.
    """

    pool: str
    start_wall: float
    interval: float
    arrivals: int
    completions: int
    rejected: int
    service_time_sum: float | None
    service_time_square_sum: float | None
    busy_slots_mean: float | None
    in_flight: int
    queue_depth: int
    oldest_wait: float | None
    tokens_in: int
    tokens_out: int

    @property
    def end_wall(self) -> float:
        """Where it ended [s since the epoch, UTC]."""
        return self.start_wall + self.interval


INTERVAL_COLUMNS = ", ".join(RecordedInterval._fields)
INTERVAL_MARKS = ", ".join("?" * len(RecordedInterval._fields))
DECISION_COLUMNS = "pool, wall_time, now, kind, observation, fleet, decision"
STATE_COLUMNS = "pool, wall_time, now, kind, version, state"
CHECKPOINT, ADOPTED = "checkpoint", "adopted"
"""Kinds of state: the whole controller before a step; a fit that it took over after one."""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the history at `path`, or make it. Raises UsageError, and writes nothing, if it cannot be one."""
    with readable(path):
        connection = _connect(path, "rwc")
        try:
            if _is_empty(connection):
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_SCHEMA)
            _check(connection, path)
            _check_integrity(connection)
            connection.executescript(_STATES_SCHEMA)
            # Safe against a kill at any moment; a power cut may lose the last commits, never the file.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open the history at `path` beside a running writer. Raises UsageError if there is none.

    Where nothing can be written, as on a read-only mount, there is no writer either, and SQLite cannot make
    its companions: the file is then read as it stands.
    """
    try:
        is_there = path.is_file()
    except OSError as error:
        raise UsageError(
            f"history {path}: cannot be looked at ({error.strerror}). Name another, or use another account."
        ) from error
    if not is_there:
        what = "is no file" if path.exists() else "no such file"
        raise UsageError(
            f"history {path}: {what}. Name the history file of the program, or start the program first."
        )
    with readable(path):
        try:
            return _open_for_reading(path, "ro")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            connection = _open_for_reading(path, "ro&immutable=1")
            with suppress(OSError):
                if path.with_name(path.name + COMPANIONS[0]).stat().st_size:
                    _log.warning(
                        "history is read without its last rows, which are in its -wal", path=str(path)
                    )
            return connection


def _open_for_reading(path: Path, mode: str) -> sqlite3.Connection:
    connection = _connect(path, mode)
    try:
        if _is_empty(connection):
            raise UsageError(f"history {path}: empty; nothing has been recorded yet.")
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def examine(path: Path) -> None:
    """Read all of the history at `path`, which is open elsewhere too. Raises UsageError if it is none."""
    with readable(path), closing(_open_for_reading(path, "ro")) as connection:
        _check_integrity(connection)


def make_folder(path: Path) -> None:
    """Make the folder of the history at `path`. Raises UsageError if it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"history {path}: its folder cannot be made ({error.strerror}). "
            f"Make it, or name another history file."
        ) from error


def is_damaged(error: Exception) -> bool:
    """Whether opening or writing failed for what the file holds, and not for being out of reach now."""
    if isinstance(error, UsageError):
        return not isinstance(error.__cause__, sqlite3.OperationalError)
    return type(error) is sqlite3.DatabaseError  # its subclasses mean something else


def set_aside(path: Path, suffixes: Sequence[str] = ("", *COMPANIONS)) -> Path:
    """Rename the file at `path` and its companions, as far as they are there; return its new name.

    Rename before the last connection is closed: SQLite then sees it and does not write to the file.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in suffixes:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a broken or unreachable file into words and a remedy."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise UsageError(
            f"history {path}: cannot be opened or read ({error}). "
            f"Check the permissions of the file and its folder, and the space on the disk."
        ) from error
    except (sqlite3.DatabaseError, ValueError) as error:
        raise UsageError(
            f"history {path}: damaged, or not a history file ({error}). Nothing was changed. "
            f"Move it away to start afresh, or name another history file."
        ) from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # Shared between threads under locks of our own; transactions are opened explicitly.
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone() != (_APPLICATION_ID,):
        raise UsageError(
            f"history {path}: an SQLite file of another program. Nothing was changed. "
            f"Name another history file."
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"history {path}: has schema {version}, this program knows {SCHEMA_VERSION}. "
            f"Nothing was changed. "
            f"Use the version of the program that wrote it, or name another history file."
        )


def _check_integrity(connection: sqlite3.Connection) -> None:
    (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        raise sqlite3.DatabaseError(finding)
