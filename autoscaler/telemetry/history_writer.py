"""The thread that puts records on disk, so that the event loop never waits for one.

It commits all that has gathered in one transaction. If the disk refuses, it keeps what it holds and
asks again; meanwhile the queue fills up to its bound.
"""

import contextlib
import queue
import sqlite3
import threading
from dataclasses import astuple, dataclass
from pathlib import Path

import structlog

from autoscaler.domain import Observation
from autoscaler.errors import UsageError
from autoscaler.telemetry.decision_codec import Row
from autoscaler.telemetry.history_file import (
    DECISION_COLUMNS,
    INTERVAL_COLUMNS,
    INTERVAL_MARKS,
    STATE_COLUMNS,
    RecordedInterval,
    is_damaged,
)
from autoscaler.telemetry.history_held import HeldHistory
from autoscaler.telemetry.history_retention import HOUR, Retention, believed_time, tidy
from autoscaler.telemetry.state_codec import compress

_log = structlog.get_logger(__name__)

_RETRY_AFTER = 1.0
"""How long to wait before asking a disk again that refused [s]."""


@dataclass(frozen=True, slots=True)
class Record:
    """One step of the control path, ready for its two tables."""

    decision: Row
    interval: RecordedInterval | None
    """None if no measurement came."""


@dataclass(frozen=True, slots=True)
class State:
    """A controller before a step or a fit after one, as it was then; see `history_file.STATE_COLUMNS`."""

    pool: str
    wall_time: float
    now: float
    kind: str
    version: str
    frozen: bytes
    """Not compressed yet, which takes longer than all else."""


class Mark:
    """Stands in the queue behind what is to be written first."""

    def __init__(self) -> None:
        self.done = threading.Event()


class HistoryWriter(threading.Thread):
    """Takes records from the queue in the order given and commits them, all that wait in one transaction."""

    def __init__(
        self,
        held: HeldHistory,
        inbox: "queue.Queue[Record | State | Mark]",
        retention: Retention,
        path: Path,
    ) -> None:
        super().__init__(name="history-writer", daemon=True)
        self._held = held
        self._inbox = inbox
        self._retention = retention
        self._path = path
        self._stopping = threading.Event()
        self._tidied_at = float("-inf")
        self._refused = False

    def run(self) -> None:
        """Write until stopped and nothing is left."""
        unwritten: list[Record | State] = []
        while not (self._stopping.is_set() and self._inbox.empty()):
            taken = self._take() if not unwritten else []
            unwritten += [item for item in taken if not isinstance(item, Mark)]
            if unwritten and self._commit(unwritten):
                unwritten = []
            for item in taken:
                if isinstance(item, Mark):
                    item.done.set()
            if unwritten and self._stopping.wait(_RETRY_AFTER):
                _log.error(
                    "history closed with unwritten records", path=str(self._path), records=len(unwritten)
                )
                break
        self._held.close()

    def stop(self) -> None:
        """Finish what is in the queue and end; a disk that refuses is not waited for."""
        self._stopping.set()
        with contextlib.suppress(queue.Full):  # then it is not asleep either
            self._inbox.put_nowait(Mark())
        self.join()

    def _take(self) -> list[Record | State | Mark]:
        """Wait for one item and take all that came with it."""
        taken = [self._inbox.get()]
        while not self._inbox.empty():
            taken.append(self._inbox.get_nowait())
        return taken

    def _commit(self, records: list[Record | State]) -> bool:
        try:
            try:
                self._write(records)
            except sqlite3.DatabaseError as error:
                if not is_damaged(error):
                    raise
                self._held.discard(error)
                self._write(records)
            self._refused = False
            return True
        except (sqlite3.Error, OSError, UsageError) as error:
            if not self._refused:
                _log.error(
                    "history cannot be written; will try again", path=str(self._path), error=str(error)
                )
            self._refused = True
            return False

    def _write(self, records: list[Record | State]) -> None:
        connection = self._held.connection()
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            steps = [item for item in records if isinstance(item, Record)]
            _insert(connection, steps)
            _insert_states(connection, [item for item in records if isinstance(item, State)])
            # Last: a checkpoint says which of the steps that were written with it are kept.
            self._tidy_if_due(connection, steps)
        self._held.committed()

    def _tidy_if_due(self, connection: sqlite3.Connection, steps: list[Record]) -> None:
        if not steps:
            return
        newest = steps[-1].decision[1]
        if abs(newest - self._tidied_at) >= HOUR:
            tidy(connection, believed_time(connection), self._retention)
            self._tidied_at = newest


def _insert(connection: sqlite3.Connection, steps: list[Record]) -> None:
    connection.executemany(
        f"INSERT INTO decisions ({DECISION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [step.decision for step in steps],
    )
    # A clock set back to the very same start has lived that interval twice; the first telling counts.
    connection.executemany(
        f"INSERT INTO intervals ({INTERVAL_COLUMNS}) VALUES ({INTERVAL_MARKS}) "
        "ON CONFLICT (pool, start_wall) DO NOTHING",
        [step.interval for step in steps if step.interval is not None],
    )


def _insert_states(connection: sqlite3.Connection, states: list[State]) -> None:
    connection.executemany(
        f"INSERT INTO controller_states ({STATE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        [(*astuple(state)[:-1], compress(state.frozen)) for state in states],
    )


def interval_row(pool: str, seen: Observation | None) -> RecordedInterval | None:
    """Make a row of what an interval showed; numbers that NumPy made become plain ones."""
    if seen is None:
        return None
    return RecordedInterval(
        pool,
        float(seen.wall_time - seen.interval),
        float(seen.interval),
        int(seen.arrivals),
        int(seen.completions),
        int(seen.rejected),
        float(seen.service_time_sum),
        float(seen.service_time_square_sum),
        float(seen.busy_slots_mean),
        int(seen.in_flight),
        int(seen.queue_depth),
        float(seen.oldest_wait),
        int(seen.tokens_in),
        int(seen.tokens_out),
    )
