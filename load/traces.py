"""Reads recorded arrivals: CSV with a header line, plain or gzip.

Two kinds. A request trace has a row a request, with `arrival_s`, seconds from the start of the trace. A
series has a row an interval, with `start_s`, `interval_s` and `requests`; where in its interval a request
came is not known and is drawn uniformly. Other columns are ignored.
"""

import csv
import gzip
import io
import zlib
from pathlib import Path

import numpy as np

from load.arrivals import of_counts

GZIP = b"\x1f\x8b"
REQUESTS_MAX = 50_000_000  # of one trace; all their times are drawn at once
SERIES_COLUMNS = ("start_s", "interval_s", "requests")


class TraceError(ValueError):
    """The file is no trace; the text says where and why."""


def read_arrivals(path: Path, rng: np.random.Generator) -> np.ndarray:
    """Return the arrival times of a trace, from 0, sorted; shape (requests,) [s].

    Raises
    ------
    TraceError
        If it cannot be read, has other columns, a value that is no number >= 0, or too many requests.
    """
    try:
        columns, rows = _read(path)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error
    if "arrival_s" in columns:
        arrivals = np.sort(_numbers(path, rows, columns.index("arrival_s"), "arrival_s"))
        return arrivals - arrivals[0] if arrivals.size else arrivals
    if set(SERIES_COLUMNS) <= set(columns):
        starts, interval, counts = (
            _numbers(path, rows, columns.index(name), name) for name in SERIES_COLUMNS
        )
        if counts.sum() > REQUESTS_MAX:
            raise TraceError(
                f"{path}: has {counts.sum():,.10g} requests, more than {REQUESTS_MAX:,}; "
                "cut it, or scale its counts down"
            )
        return of_counts(starts - starts[:1], interval, np.rint(counts).astype(int), rng)
    raise TraceError(
        f"{path}: has the columns {', '.join(columns)[:80] or '(none)'}; "
        f"needs arrival_s, or {', '.join(SERIES_COLUMNS)}"
    )


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw.startswith(GZIP) else raw).decode()
    rows = csv.reader(io.StringIO(text, newline=""))
    return next(rows, []), [row for row in rows if row]


def _numbers(path: Path, rows: list[list[str]], column: int, name: str) -> np.ndarray:
    numbers = np.empty(len(rows))
    for index, row in enumerate(rows):
        given = row[column] if column < len(row) else ""
        try:
            numbers[index] = float(given)
        except ValueError:
            numbers[index] = np.nan
        if not 0 <= numbers[index] < np.inf:
            raise TraceError(f"{path}: row {index + 2}: {name} is {given!r}; needs a number >= 0")
    return numbers
