"""What is kept, and for how long: fine for two weeks, hourly for a year.

Rolling up joins the intervals of one hour that follow one another without a gap into one longer row
of the same table. A gap stays a gap: no row ever spans time that was not observed, so reading needs
not know which rows were rolled up.

Age is measured from what was recorded, not from a clock of its own, and a clock is not believed at once:
one that is a year ahead for an hour would age out everything. A time counts as reached when a day's worth
of hours has been recorded at it or later. So what a wrong clock says matters only if it stays wrong for a
day, and everything is kept a day longer than is said.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from autoscaler.telemetry.history_file import CHECKPOINT, INTERVAL_COLUMNS, INTERVAL_MARKS, RecordedInterval

HOUR = 3600.0
DAY = 24 * HOUR

_GAP_MAX = 0.01
"""Two intervals follow one another if less than this fraction of the later one lies between them [1]."""


_BELIEVED_AFTER = 24
"""Hours with a record in them, at a time or later, that make it believed [1]."""
_CHECKPOINT_AGE_MAX = 2 * DAY
"""What came after a checkpoint is not kept for its sake when it is so much older than it must be [s]."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long history is kept."""

    fine: float = 14 * DAY
    """Intervals, every decision and what it takes to re-execute it [s]; two weeks show a weekly season."""
    rolled_up: float = 366 * DAY
    """Hourly intervals, and the decisions that changed the fleet [s]."""


def believed_time(connection: sqlite3.Connection) -> float:
    """Return the calendar time that the records prove to be reached [s since the epoch].

    It is the start of the 24th-newest hour that has a record, or of the first if there are fewer.
    """
    (hour,) = connection.execute(
        "SELECT min(hour) FROM ("
        "SELECT CAST(start_wall / 3600 AS INTEGER) AS hour FROM intervals "
        "UNION SELECT CAST(wall_time / 3600 AS INTEGER) FROM decisions "
        "ORDER BY hour DESC LIMIT ?)",
        (_BELIEVED_AFTER,),
    ).fetchone()
    return HOUR * (hour or 0)


def tidy(connection: sqlite3.Connection, newest: float, retention: Retention) -> None:
    """Roll up and forget what is old at `newest` [s since the epoch]; call it inside a transaction."""
    fine_from = (newest - retention.fine) // HOUR * HOUR
    forget_before = newest - retention.rolled_up
    connection.execute("DELETE FROM intervals WHERE start_wall < ?", (forget_before,))
    _forget_steps(connection, fine_from)
    connection.execute("DELETE FROM decisions WHERE kind = 'scale_to' AND wall_time < ?", (forget_before,))
    old = [
        RecordedInterval(*row)
        for row in connection.execute(
            f"SELECT {INTERVAL_COLUMNS} FROM intervals WHERE rolled_up = 0 AND start_wall < ? "
            "ORDER BY pool, start_wall",
            (fine_from,),
        )
    ]
    connection.execute("DELETE FROM intervals WHERE rolled_up = 0 AND start_wall < ?", (fine_from,))
    connection.executemany(
        f"INSERT INTO intervals ({INTERVAL_COLUMNS}, rolled_up) VALUES ({INTERVAL_MARKS}, 1) "
        "ON CONFLICT (pool, start_wall) DO NOTHING",
        [_joined(run) for run in _runs(old)],
    )


def _forget_steps(connection: sqlite3.Connection, fine_from: float) -> None:
    """Forget the holds and the states before `fine_from` [s since the epoch].

    A decision follows from all since the checkpoint before it: so what came after a pool's newest checkpoint
    before `fine_from` is kept along with it, which is about a day longer.
    """
    for table, of in (("decisions", "kind = 'hold' AND"), ("controller_states", "")):
        connection.execute(
            f"DELETE FROM {table} WHERE {of} wall_time < :fine_from AND wall_time < ifnull("
            "(SELECT max(of_pool.wall_time) FROM controller_states AS of_pool "
            f"WHERE of_pool.pool = {table}.pool AND of_pool.kind = '{CHECKPOINT}' "
            "AND of_pool.wall_time BETWEEN :reached AND :fine_from), :fine_from)",
            {"fine_from": fine_from, "reached": fine_from - _CHECKPOINT_AGE_MAX},
        )


def _runs(rows: list[RecordedInterval]) -> Iterator[list[RecordedInterval]]:
    """Cut rows, ordered by pool and time, wherever the pool or the hour changes or a gap lies between."""
    if not rows:
        return
    run = [rows[0]]
    for earlier, later in pairwise(rows):
        same_hour = earlier.start_wall // HOUR == later.start_wall // HOUR
        meet = abs(later.start_wall - earlier.end_wall) <= _GAP_MAX * later.interval
        if not (earlier.pool == later.pool and same_hour and meet):
            yield run
            run = []
        run.append(later)
    yield run


def _joined(run: list[RecordedInterval]) -> RecordedInterval:
    """Add up what was counted, average what was averaged, keep the last of what was a reading."""
    last = run[-1]
    return last._replace(
        start_wall=run[0].start_wall,
        interval=last.end_wall - run[0].start_wall,
        arrivals=sum(row.arrivals for row in run),
        completions=sum(row.completions for row in run),
        rejected=sum(row.rejected for row in run),
        service_time_sum=_sum(row.service_time_sum for row in run),
        service_time_square_sum=_sum(row.service_time_square_sum for row in run),
        busy_slots_mean=_busy_slots_mean(run),
        tokens_in=sum(row.tokens_in for row in run),
        tokens_out=sum(row.tokens_out for row in run),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """Add up what is known; None if nothing is, as in imported intervals."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _busy_slots_mean(run: list[RecordedInterval]) -> float | None:
    """Average over the time of which it is known."""
    known = [(row.busy_slots_mean, row.interval) for row in run if row.busy_slots_mean is not None]
    return (
        sum(mean * length for mean, length in known) / sum(length for _, length in known) if known else None
    )
