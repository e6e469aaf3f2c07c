"""Reads traffic from a file: access logs, JSON lines, CSV of requests or of counts; plain or gzip.

The kind of file is told by its first lines. A line that cannot be used is counted with its reason and left
out: a log of a month has a few broken lines, and they are no reason to give up. A file of which no line can
be used is an error.

access log     common or combined format of Apache and nginx, the duration as the last field or as `rt=…`
JSON lines     an object a line, keys as the columns of a CSV
CSV            with a header: a time (`arrival_s`, `timestamp`, …) and maybe a duration and tokens; or counts:
               `start_s` and `requests`, or `requests` alone. Without a header: arrival, duration
"""

import gzip
import io
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Protocol

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import FaultCount, Requests, Traffic
from autoscaler.telemetry.traffic_file_access_log import AccessLog
from autoscaler.telemetry.traffic_file_counts import CountsTable
from autoscaler.telemetry.traffic_file_durations import LineUnusable
from autoscaler.telemetry.traffic_file_fields import JsonLines, RequestTable
from forecasting.series import Series

Progress = Callable[[float], None]
"""Called now and then with the share of the file that is read, in [0, 1]."""

_GZIP_MAGIC = b"\x1f\x8b"
_PROGRESS_EVERY = 4096
_LOOK_AHEAD = 50
"""So many lines are looked at to tell what the file is: a rotated log may begin in the middle of a line."""


class _Form(Protocol):
    """Takes the lines of one kind of file."""

    name: str

    def take(self, line: str) -> None:
        """Take in a line; raises LineUnusable with the reason if it cannot."""

    def demand(self) -> tuple[Requests | Series, tuple[str, ...]]:
        """Return what the lines told, and what was assumed; raises UsageError if that is nothing."""


def read_traffic(
    path: Path,
    *,
    interval: float | None = None,
    duration_unit: str | None = None,
    gaps: bool = False,
    progress: Progress | None = None,
) -> Traffic:
    """Read the traffic in `path`.

    Parameters
    ----------
    path : Path
        The file.
    interval : float, optional
        Length of an interval [s], for counts that come without times.
    duration_unit : str, optional
        `s`, `ms`, `us` or `ns`, for durations that do not say; else it is told by their form.
    gaps : bool
        Whether counts that were filled in, or whose interval is absent, are not known rather than what is
        there or zero; see `traffic_file_counts`.
    progress : callable, optional
        See `Progress`.

    Raises
    ------
    UsageError
        If the file cannot be read, is of no known kind, or has no line that can be used.
    """
    faults, lines, form = FaultCount(), 0, None
    try:
        with path.open("rb") as raw:
            numbered = enumerate(_lines(path, raw, progress), start=1)
            first = list(islice(numbered, _LOOK_AHEAD))
            form, header = _form(path, [line for _, line in first], interval, duration_unit, gaps)
            for number, line in chain(first, numbered):
                if line.isspace() or not line or line.startswith("#") or number == header:
                    continue
                lines += 1
                try:
                    form.take(line)
                except LineUnusable as fault:
                    faults.add(str(fault), number, line)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    try:
        demand, notes = form.demand()
    except UsageError as error:
        raise UsageError(f"{path}: {error}{_first_fault(faults)}") from error
    return Traffic(path, form.name, demand, lines, faults.faults(), notes)


def _lines(path: Path, raw: BinaryIO, progress: Progress | None) -> Iterator[str]:
    """Yield the lines as text; bytes that are no UTF-8 are replaced."""
    size = max(1, path.stat().st_size)
    zipped = raw.read(2) == _GZIP_MAGIC
    raw.seek(0)
    binary: BinaryIO = gzip.GzipFile(fileobj=raw) if zipped else raw  # type: ignore[assignment]  # reads bytes
    text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline=None)
    for number, line in enumerate(text):
        if progress and number % _PROGRESS_EVERY == 0:
            progress(min(1.0, raw.tell() / size))
        yield line
    if progress:
        progress(1.0)


def _form(
    path: Path, first: list[str], interval: float | None, duration_unit: str | None, gaps: bool
) -> tuple[_Form, int]:
    """Tell what the file is; return who takes its lines, and the number of the header, 0 if there is none."""
    full = [(number, line) for number, line in enumerate(first, 1) if line.strip() and line[0] != "#"]
    if not full:
        raise UsageError(f"{path}: is empty")
    if any(AccessLog.fits(line) for _, line in full):
        return AccessLog(duration_unit), 0
    if any(JsonLines.fits(line) for _, line in full):
        return JsonLines(duration_unit), 0
    number, header = full[0]
    if CountsTable.fits(header):
        return CountsTable(header, interval, gaps), number
    if RequestTable.fits_header(header):
        return RequestTable(header, duration_unit), number
    if RequestTable.fits_row(header):
        return RequestTable(None, duration_unit), 0
    raise UsageError(
        f"{path}: starts with {header.strip()[:60]!r}, which is no access log, no JSON line, and no CSV "
        "header that names a time of arrival (arrival_s, timestamp, …) or counts (start_s, requests)"
    )


def _first_fault(faults: FaultCount) -> str:
    """Say what was wrong with the lines, if that is why there is nothing."""
    told = faults.faults()
    if not told:
        return ""
    number, line = told[0].examples[0]
    return f"; {told[0].count} lines: {told[0].reason}, the first is line {number}: {line[:80]!r}"
