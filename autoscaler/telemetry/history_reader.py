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
    DECISION_COLUMNS,
    INTERVAL_COLUMNS,
    RecordedInterval,
    open_for_reading,
    readable,
)


@dataclass(frozen=True, slots=True)
class PoolSpan:
    """What a history holds of one pool."""

    pool: str
    start_wall: float
    """Where its first interval began [s since the epoch]."""
    end_wall: float
    """Where its last one ended [s since the epoch]."""


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
