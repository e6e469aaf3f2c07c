"""A CSV of single requests: with a header, or of two bare columns, the arrival and the duration.

Commas, semicolons and tabs part columns, whichever the header has most of. A cell in quotes may hold line
breaks, as the text of a prompt does.
"""

import csv
from itertools import chain

from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.field_names import request_fields
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.telemetry.traffic.named_requests import NamedRequests

_CELL_LINES_MAX = 10_000
"""A quote that is not closed within so many lines is a slip, and not the beginning of a cell."""


class RequestTable(NamedRequests):
    """Takes the rows of a CSV; without a header its columns are the arrival and the duration."""

    name = "CSV of requests"

    def __init__(self, header: str | None, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._delimiter, self._columns = header_of(header) if header else (",", ["arrival", "duration"])
        names = request_fields(self._columns)
        if names is None:
            raise ValueError(f"need a header with a time of arrival, got {header}")
        self._names = names
        self._open: list[str] = []
        self._opened = 0

    @staticmethod
    def fits(header: str) -> bool:
        """Whether `header` names a time of arrival."""
        return request_fields(header_of(header)[1]) is not None

    @staticmethod
    def fits_row(line: str) -> bool:
        """Whether `line` is two numbers."""
        try:
            return len([float(cell) for cell in row_of(line, ",")]) == 2
        except ValueError:
            return False

    def take(self, number: int, line: str) -> None:
        """Take in a line; raises LineUnusable if it ends a row that cannot be used."""
        if self._open or line.count('"') % 2:
            self._join(number, line)
        else:
            self._row(number, line)

    def _join(self, number: int, line: str) -> None:
        """Keep the lines of a cell until it is closed."""
        if not self._open:
            self._opened = number
        self._open.append(line)
        if (len(self._open) > 1 and line.count('"') % 2) or len(self._open) > _CELL_LINES_MAX:
            whole, self._open = "\n".join(self._open), []
            self._row(self._opened, whole)

    def _row(self, number: int, line: str) -> None:
        row = row_of(line, self._delimiter)
        if len(row) < len(self._columns):
            raise LineUnusable("too few columns")
        self.add(number, line, dict(zip(self._columns, row, strict=False)), self._names)

    def told(self, faults: FaultCount) -> Told:
        """Return the requests in the order of their arrival."""
        if self._open:
            faults.add("a quote is not closed", self._opened, self._open[0])
        return super().told(faults)


def header_of(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a CSV and the names of its columns, in lower case."""
    delimiter = max(",;\t", key=line.count)
    return delimiter, [name.strip().lower() for name in row_of(line, delimiter)]


def row_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of a row."""
    if '"' not in line:
        return line.split(delimiter)
    return list(chain.from_iterable(csv.reader([line], delimiter=delimiter)))
