"""A CSV of counts: requests in each interval; also the usage that OpenAI exports.

Columns `start_s` (or `timestamp`, …) and `requests` (or `count`, …). How long an interval is, a column says
(`interval_s`, or `end_time`), or the smallest step between rows. With `requests` alone, a row an interval, it
must be told. OpenAI's export lists every bucket, with `num_model_requests` where it had any.
"""

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any

import msgspec

from autoscaler.telemetry.traffic.count_rows import CountRows
from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.field_names import count_fields
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.telemetry.traffic.request_table import header_of, row_of

_NO_COUNT = ("", "-", "nan", "na", "null", "none")


class NamedCounts:
    """Takes counts of intervals as mappings of names to values."""

    name = "CSV of counts"

    def __init__(self, columns: Sequence[str], wanted: Wanted) -> None:
        fields = count_fields(columns)
        if fields is None:
            raise ValueError(f"need a column of counts, got {columns}")
        self._fields, self._gaps = fields, wanted.gaps
        self._rows = CountRows(wanted, fields.labelled)

    def add(self, number: int, line: str, values: Mapping[str, Any]) -> None:
        """Take in an interval; one whose count cannot be used leaves a gap, and raises LineUnusable."""
        fields, clock = self._fields, self._rows.clock
        start = nan if fields.start is None else clock.read(values[fields.start], fields.start_unit)
        length = nan
        if fields.length is not None:
            length = _number(values.get(fields.length))
        elif fields.end is not None:
            length = clock.read(values[fields.end], fields.start_unit) - start
        cell = str(values.get(fields.count, "")).strip()
        tokens = self._tokens(values, fields.tokens_in), self._tokens(values, fields.tokens_out)
        count, fault = nan, None
        if cell.lower() in _NO_COUNT and fields.empty_is_zero:
            count, tokens = 0.0, (0.0, 0.0)
        elif cell.lower() not in _NO_COUNT or not self._gaps:
            try:
                count = _count(cell)
            except LineUnusable as unusable:
                fault = unusable
        self._rows.add(
            number,
            line,
            start,
            count,
            length=length,
            filled=fields.filled is not None and str(values.get(fields.filled)) == "1",
            tokens=tokens,
            model=str((values.get(fields.model) if fields.model else "") or ""),
        )
        if fault is not None:
            raise fault

    @staticmethod
    def _tokens(values: Mapping[str, Any], name: str | None) -> float:
        return nan if name is None else _number(values.get(name))

    def told(self, faults: FaultCount) -> Told:
        """Return the counts, evenly spaced."""
        return self._rows.told(faults)


class CountsTable(NamedCounts):
    """Takes the rows of a CSV of counts."""

    def __init__(self, header: str, wanted: Wanted) -> None:
        self._delimiter, self._columns = header_of(header)
        super().__init__(self._columns, wanted)
        if self._fields.empty_is_zero:
            self.name = "OpenAI usage"

    @staticmethod
    def fits(header: str) -> bool:
        """Whether `header` names counts."""
        return count_fields(header_of(header)[1]) is not None

    def take(self, number: int, line: str) -> None:
        """Take in a row; one whose count cannot be used leaves a gap, and raises LineUnusable."""
        row = row_of(line, self._delimiter)
        values = dict(zip(self._columns, row, strict=False))
        needed = [name for name in (self._fields.start, self._fields.count) if name is not None]
        if any(name not in values for name in needed) and not self._fields.empty_is_zero:
            raise LineUnusable("too few columns")
        self.add(number, line, values)


class CountLines(NamedCounts):
    """Takes JSON objects of counts, one a line."""

    name = "JSON lines of counts"

    def __init__(self, first: str, wanted: Wanted) -> None:
        super().__init__(list(msgspec.json.decode(first)), wanted)

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` is an object with a time and a number of requests."""
        try:
            value = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return False
        fields = count_fields(list(value)) if isinstance(value, dict) else None
        return (
            fields is not None
            and fields.start is not None
            and isinstance(value[fields.count], int | float | str)
        )

    def take(self, number: int, line: str) -> None:
        """Take in a line; raises LineUnusable if it is no object."""
        try:
            fields = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            raise LineUnusable("no JSON") from None
        if not isinstance(fields, dict) or any(
            name is not None and name not in fields for name in (self._fields.start, self._fields.count)
        ):
            raise LineUnusable("no time or no count")
        self.add(number, line, fields)


def _count(text: str) -> float:
    try:
        count = float(text)
    except ValueError:
        raise LineUnusable("the count is no number") from None
    if not (isfinite(count) and count >= 0):
        raise LineUnusable("the count is not a finite number >= 0")
    return count


def _number(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        return nan
    return number if isfinite(number) and number >= 0 else nan
