"""Puts arrivals of the time before into a history, so that a new installation starts with weeks of it.

What is there stays: only the time that no interval covers yet is filled in, be they measured or imported
before. Hence nothing measured is ever overwritten, and importing the same again changes nothing. Where an
interval is covered in part, the rest of it gets its even share of the arrivals. A gap stays a gap.

An imported interval knows its arrivals and no more: no services, no slots. Arrivals are whole numbers in a
history; fractions, which rates give, are carried on to the next interval.

It is all done in one transaction under the lock of the writer, so a kill leaves the history as it was.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autoscaler.errors import UsageError
from autoscaler.telemetry.history_file import INTERVAL_COLUMNS, INTERVAL_MARKS, open_for_writing, readable
from autoscaler.telemetry.history_lock import HistoryLock
from autoscaler.telemetry.history_retention import Retention, believed_time, tidy
from autoscaler.units import format_duration
from forecasting.series import Series

Floats = NDArray[np.float64]

PART_MIN = 0.01
"""A part of an interval that is left uncovered is left so if it is a smaller share of it than this [1]."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Attributes
    ----------
    intervals : int
        Intervals of the series that were known, and not too old [1].
    added : int
        Of these, how many filled a time that the history had not covered, in whole or in part [1].
    arrivals : int
        Requests in them.
    too_old : int
        Known intervals left out, for the history would forget them at once [1].
    """

    intervals: int
    added: int
    arrivals: int
    too_old: int


def import_arrivals(
    path: Path, pool: str, series: Series, now: float, retention: Retention | None = None
) -> Imported:
    """Put the known counts of `series` into the history at `path`, which is made if there is none.

    `now` is the calendar time [s since the epoch]: what lies after it cannot have been counted.

    Raises
    ------
    HistoryLocked
        If a program writes to it now.
    UsageError
        If the series ends after `now`, `path` cannot be a history, or the disk refuses; nothing has
        changed then.
    """
    path, retention = path.resolve(), retention or Retention()
    if series.end > now + series.interval:
        ahead = format_duration(round(series.end - now))
        raise UsageError(f"what is to be imported ends {ahead} from now, and cannot have been counted yet")
    if not path.parent.is_dir():
        raise UsageError(f"history {path}: there is no folder {path.parent}. Make it, or name another file.")
    lock = HistoryLock(path)
    try:
        with closing(open_for_writing(path)) as connection, readable(path), connection:
            connection.execute("BEGIN IMMEDIATE")
            newest = max(series.end, believed_time(connection))
            starts, ends, counts, too_old = _known(series, newest - retention.rolled_up)
            rows = connection.execute(
                "SELECT start_wall, start_wall + interval FROM intervals WHERE pool = ? AND start_wall < ? "
                "AND start_wall + interval > ? ORDER BY start_wall",
                (pool, series.end, series.start),
            ).fetchall()
            of, parts = uncovered(starts, ends, np.array(rows, dtype=float).reshape(-1, 2))
            shares = counts[of] * (parts[:, 1] - parts[:, 0]) / series.interval
            arrivals = np.diff(np.round(np.cumsum(shares)), prepend=0.0)
            connection.executemany(
                f"INSERT INTO intervals ({INTERVAL_COLUMNS}) VALUES ({INTERVAL_MARKS})",
                [_row(pool, *part) for part in zip(parts.tolist(), arrivals.tolist(), strict=True)],
            )
            tidy(connection, newest, retention)
    finally:
        lock.release()
    return Imported(len(starts), len(np.unique(of)), int(arrivals.sum()), too_old)


def uncovered(starts: Floats, ends: Floats, covered: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the parts of intervals that nothing covers.

    Parameters
    ----------
    starts, ends : ndarray, shape (n,)
        Intervals in order, none overlapping another [s].
    covered : ndarray, shape (m, 2)
        Start and end of what is there, in order of the starts; these may overlap [s].

    Returns
    -------
    of : ndarray of int, shape (k,)
        Which interval each part is of.
    parts : ndarray, shape (k, 2)
        Start and end of each part [s], in order.
    """
    # What is free between two covered stretches, and beyond the first and the last.
    reached = np.maximum.accumulate(np.concatenate([[-np.inf], covered[:, 1]]))
    free = np.column_stack([reached, np.concatenate([covered[:, 0], [np.inf]])])
    free = free[free[:, 1] > free[:, 0]]
    first = np.searchsorted(free[:, 1], starts, side="right")
    last = np.searchsorted(free[:, 0], ends, side="left")
    of = np.repeat(np.arange(len(starts)), np.maximum(last - first, 0))
    nth = np.arange(len(of)) - np.searchsorted(of, of, side="left")
    holes = free[first[of] + nth]
    parts = np.column_stack([np.maximum(holes[:, 0], starts[of]), np.minimum(holes[:, 1], ends[of])])
    wide = parts[:, 1] - parts[:, 0] >= PART_MIN * (ends[of] - starts[of])
    return of[wide], parts[wide]


def _known(series: Series, not_before: float) -> tuple[Floats, Floats, Floats, int]:
    """Return starts, ends and counts of what is known and young enough, and how many are too old."""
    edges: Floats = series.start + series.interval * np.arange(len(series) + 1, dtype=np.float64)
    known = ~np.isnan(series.values)
    young = edges[:-1] >= not_before
    kept = known & young
    return edges[:-1][kept], edges[1:][kept], series.values[kept], int((known & ~young).sum())


def _row(pool: str, part: list[float], arrivals: float) -> tuple[object, ...]:
    start, end = part
    return (pool, start, end - start, int(arrivals), 0, 0, None, None, None, 0, 0, None, 0, 0)
