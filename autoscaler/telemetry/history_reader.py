"""Reading the history: beside the program that writes it, or after it ended. Needs no lock."""

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from autoscaler.telemetry.decision_codec import DecisionRecord, record_from_row
from autoscaler.telemetry.history_bins import FloatArray, bin_arrivals
from autoscaler.telemetry.history_file import (
    ADOPTED,
    CHECKPOINT,
    DECISION_COLUMNS,
    INTERVAL_COLUMNS,
    RecordedInterval,
    open_for_reading,
    readable,
)

_ID_MAX = 2**63 - 1
"""Greater than any id of a row that there will be."""


@dataclass(frozen=True, slots=True)
class PoolSpan:
    """What a history holds of one pool."""

    pool: str
    start_wall: float
    """Where its first interval began [s since the epoch]."""
    end_wall: float
    """Where its last one ended [s since the epoch]."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A controller that was kept, and the step that it was about to take."""

    id: int
    pool: str
    version: str
    """Of the program that wrote it."""
    decision_id: int
    """Of that step; the ids of later ones are greater."""


@dataclass(frozen=True, slots=True)
class AdoptedFit:
    """A fit that was adopted after the step of these times."""

    now: float
    wall_time: float
    state: bytes
    """See `state_codec.thaw`."""


class HistoryReader:
    """Reads a history, also beside the program that writes it. Safe to call from any thread.

    Raises
    ------
    UsageError
        On construction, if there is no readable history at `path`; on reading, if it turns out damaged.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).resolve()
        self._reading: sqlite3.Connection | None = open_for_reading(self.path)
        self._reading_lock = threading.Lock()

    def pools(self) -> list[PoolSpan]:
        """Return the pools that have intervals, by name."""
        rows = self._rows(
            "SELECT pool, min(start_wall), max(start_wall + interval) FROM intervals "
            "GROUP BY pool ORDER BY pool",
            (),
        )
        return [PoolSpan(*row) for row in rows]

    def arrivals(self, pool: str, interval: float, since_wall: float, until_wall: float) -> FloatArray:
        """Count the arrivals of `pool` per bin of `interval` seconds over [since_wall, until_wall).

        Returns
        -------
        ndarray, shape (n_bins,)
            Requests per bin, oldest first; NaN where the bin was not fully observed.
        """
        rows = self._rows(
            "SELECT start_wall, interval, arrivals FROM intervals "
            "WHERE pool = ? AND start_wall < ? AND start_wall + interval > ? ORDER BY start_wall",
            (pool, until_wall, since_wall),
        )
        starts, lengths, arrivals = np.array(rows, dtype=float).reshape(-1, 3).T
        return bin_arrivals(starts, lengths, arrivals, interval=interval, since=since_wall, until=until_wall)

    def intervals(self, pool: str, since_wall: float = 0.0) -> list[RecordedInterval]:
        """Return what was recorded of `pool` from `since_wall` on, oldest first."""
        rows = self._rows(
            f"SELECT {INTERVAL_COLUMNS} FROM intervals "
            "WHERE pool = ? AND start_wall >= ? ORDER BY start_wall",
            (pool, since_wall),
        )
        return [RecordedInterval(*row) for row in rows]

    def decisions(self, pool: str | None = None, limit: int = 100) -> list[DecisionRecord]:
        """Return the last `limit` decisions, oldest first, of `pool` or of all."""
        where, arguments = ("WHERE pool = ?", (pool,)) if pool is not None else ("", ())
        rows = self._rows(
            f"SELECT {DECISION_COLUMNS} FROM decisions {where} ORDER BY id DESC LIMIT ?",
            (*arguments, max(0, limit)),
        )
        with readable(self.path):
            return [record_from_row(row) for row in reversed(rows)]

    def last_decision(self, pool: str) -> DecisionRecord | None:
        """Return the newest decision of `pool`, or None before the first."""
        return next(iter(self.decisions(pool, limit=1)), None)

    def decided_pools(self) -> list[str]:
        """Return the pools that have decisions, by name."""
        return [pool for (pool,) in self._rows("SELECT DISTINCT pool FROM decisions ORDER BY pool", ())]

    def decision_ids(self, pool: str, last: int | None = None) -> list[int]:
        """Return the ids of the `last` decisions of `pool`, or of all, in the order of their making."""
        rows = self._rows(
            "SELECT id FROM decisions WHERE pool = ? ORDER BY id DESC LIMIT ?",
            (pool, -1 if last is None else last),
        )
        return [number for (number,) in reversed(rows)]

    def steps(self, pool: str, first: int, end: int | None) -> list[DecisionRecord]:
        """Return the decisions of `pool` with ids in [first, end), in the order in which they were made."""
        rows = self._rows(
            f"SELECT {DECISION_COLUMNS} FROM decisions WHERE pool = ? AND id >= ? AND id < ? ORDER BY id",
            (pool, first, _ID_MAX if end is None else end),
        )
        with readable(self.path):
            return [record_from_row(row) for row in rows]

    def checkpoints(self, pool: str) -> list[Checkpoint]:
        """Return the checkpoints of `pool` whose step was recorded, oldest first."""
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'controller_states'", ()):
            return []  # it was made before there were states, and not opened for writing since
        rows = self._rows(
            "SELECT state.id, state.pool, state.version, min(step.id) FROM controller_states AS state "
            "JOIN decisions AS step ON step.pool = state.pool AND step.now = state.now "
            "AND step.wall_time = state.wall_time AND step.kind IN ('hold', 'scale_to') "
            "WHERE state.pool = ? AND state.kind = ? GROUP BY state.id ORDER BY state.id",
            (pool, CHECKPOINT),
        )
        return [Checkpoint(*row) for row in rows]

    def state(self, checkpoint: Checkpoint) -> bytes:
        """Return the controller of a checkpoint; see `state_codec.thaw`."""
        ((state,),) = self._rows("SELECT state FROM controller_states WHERE id = ?", (checkpoint.id,))
        return bytes(state)

    def adopted_fits(self, checkpoint: Checkpoint, until: Checkpoint | None) -> list[AdoptedFit]:
        """Return what was adopted between two checkpoints of one pool, in that order."""
        rows = self._rows(
            "SELECT now, wall_time, state FROM controller_states "
            "WHERE pool = ? AND kind = ? AND id > ? AND id < ? ORDER BY id",
            (checkpoint.pool, ADOPTED, checkpoint.id, _ID_MAX if until is None else until.id),
        )
        return [AdoptedFit(*row) for row in rows]

    def close(self) -> None:
        """Let go of the file."""
        with self._reading_lock:
            if self._reading is not None:
                self._reading.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, query: str, arguments: tuple[object, ...]) -> list[Any]:
        with self._reading_lock, readable(self.path):
            if self._reading is None:
                self._reading = open_for_reading(self.path)
            return self._reading.execute(query, arguments).fetchall()
