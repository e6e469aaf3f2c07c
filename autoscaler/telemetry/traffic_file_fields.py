"""Single requests with named fields: JSON lines, and CSV with a header or of two bare columns.

A field is known by its name, whatever its case; a unit may follow it (`latency_ms`, `arrival_s`). A time is
that of the arrival, unless the duration is called `request_time`: nginx writes its line when the request has
ended.
"""

import csv
import json
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import Requests
from autoscaler.telemetry.traffic_file_durations import (
    UNITS,
    Durations,
    LineUnusable,
    any_time,
    calendar_start,
)

_UNIT = r"(?:_?(s|sec|seconds|ms|millis|milliseconds|us|micros|microseconds|ns|nanos|nanoseconds))?"
_TIME = re.compile(
    r"(?:arrival|arrival_time|arrived|arrived_at|start|start_time|started|started_at|@?timestamp|time|ts|datetime"
    r"|date|time_iso8601|time_local|msec)" + _UNIT
)
_DURATION = re.compile(
    r"(?:duration|service_time|latency|request_time|response_time|elapsed|elapsed_time|took|processing_time)"
    + _UNIT
)
_TOKENS_IN = {"input_tokens", "prompt_tokens", "tokens_in", "contexttokens"}
_TOKENS_OUT = {"output_tokens", "completion_tokens", "tokens_out", "generatedtokens"}
_STATUS = {"status", "status_code", "http_status", "response_code"}
_FAILED = 400
_ENDS = "request_time"


@dataclass(frozen=True, slots=True)
class _Names:
    """Under which names a file tells what is wanted; None where it does not."""

    time: str
    time_unit: float | None
    duration: str | None = None
    duration_unit: str | None = None
    tokens_in: str | None = None
    tokens_out: str | None = None
    status: str | None = None


def names_among(fields: Sequence[str]) -> _Names | None:
    """Return which of `fields` tell what, or None if none is a time of arrival."""
    # `start_s` is where an interval starts, in tables that are no requests.
    lower = {field.strip().lower(): field for field in fields if field.strip().lower() != "start_s"}
    time = _first(_TIME, lower)
    if time is None:
        return None
    duration = _first(_DURATION, lower)
    # Without a unit in its name a number says by its size what it is.
    unit = UNITS[_short(time[1])] if time[1] else None
    return _Names(
        lower[time[0]],
        unit,
        lower[duration[0]] if duration else None,
        _short(duration[1]) if duration and duration[1] else None,
        *(
            next((lower[n] for n in lower if n in names), None)
            for names in (_TOKENS_IN, _TOKENS_OUT, _STATUS)
        ),
    )


def header_of(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a CSV and the names of its columns, in lower case."""
    delimiter = max(",;\t", key=line.count)
    return delimiter, [name.strip().lower() for name in row_of(line, delimiter)]


def row_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of a row."""
    if '"' not in line:
        return line.rstrip("\r\n").split(delimiter)
    return next(csv.reader([line], delimiter=delimiter), [])


class _Gathered:
    """Requests with named fields, one at a time."""

    def __init__(self, duration_unit: str | None) -> None:
        self._durations = Durations(duration_unit, whole_numbers=None)
        self._asked_unit = duration_unit
        self._times, self._tokens_in, self._tokens_out = array("d"), array("d"), array("d")
        self._failed, self._utc_offset, self._ends = 0, 0.0, False

    def add(self, fields: Mapping[str, Any], names: _Names) -> None:
        time, self._utc_offset = any_time(fields[names.time], names.time_unit)
        failed = names.status is not None and _is_failed(fields.get(names.status))
        duration = None if failed or names.duration is None else fields.get(names.duration)
        self._durations.unit = self._asked_unit or names.duration_unit
        tokens = [_tokens(fields.get(name)) if name else nan for name in (names.tokens_in, names.tokens_out)]
        self._durations.add(duration)
        self._times.append(time)
        self._tokens_in.append(tokens[0])
        self._tokens_out.append(tokens[1])
        self._failed += failed
        self._ends = self._ends or names.duration == _ENDS

    def demand(self) -> tuple[Requests, tuple[str, ...]]:
        """Return the requests in the order of their arrival."""
        if not self._times:
            raise UsageError("has no line that can be used")
        durations, times = self._durations.seconds(), np.array(self._times)
        notes = list(self._durations.notes)
        if self._ends:
            times = times - np.nan_to_num(durations)
            notes.append("times are taken as those of the end of a request, as nginx writes them")
        if self._failed:
            notes.append(
                f"{self._failed:,} failed requests (status 400 and above) count as demand, "
                "and are left out of the service time"
            )
        order = np.argsort(times, kind="stable")
        requests = Requests(
            times[order] - times[order[0]],
            durations[order],
            np.array(self._tokens_in)[order],
            np.array(self._tokens_out)[order],
            calendar_start(times[order[:1]].tolist()),
            self._utc_offset,
        )
        return requests, tuple(notes)


class JsonLines(_Gathered):
    """Takes JSON objects, one a line."""

    name = "JSON lines"

    def __init__(self, duration_unit: str | None) -> None:
        super().__init__(duration_unit)
        self._known: dict[tuple[str, ...], _Names | None] = {}

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` is a JSON object with a time of arrival."""
        try:
            fields = json.loads(line)
        except ValueError:
            return False
        return isinstance(fields, dict) and names_among(list(fields)) is not None

    def take(self, line: str) -> None:
        """Take in a line; raises LineUnusable if it is no object or tells no time."""
        try:
            fields = json.loads(line)
        except ValueError:
            raise LineUnusable("no JSON") from None
        if not isinstance(fields, dict):
            raise LineUnusable("no JSON object")
        keys = tuple(fields)
        if keys not in self._known and len(self._known) < 1000:
            self._known[keys] = names_among(keys)
        names = self._known[keys] if keys in self._known else names_among(keys)
        if names is None:
            raise LineUnusable("no time of arrival")
        self.add(fields, names)


class RequestTable(_Gathered):
    """Takes the rows of a CSV; without a header its columns are the arrival and the duration."""

    name = "CSV of requests"

    def __init__(self, header: str | None, duration_unit: str | None) -> None:
        super().__init__(duration_unit)
        self._delimiter, self._columns = header_of(header) if header else (",", ["arrival", "duration"])
        names = names_among(self._columns)
        if names is None:
            raise ValueError(f"need a header with a time of arrival, got {header}")
        self._names = names

    @staticmethod
    def fits_header(header: str) -> bool:
        """Whether `header` names a time of arrival."""
        return names_among(header_of(header)[1]) is not None

    @staticmethod
    def fits_row(line: str) -> bool:
        """Whether `line` is two numbers."""
        try:
            return len([float(cell) for cell in row_of(line, ",")]) == 2
        except ValueError:
            return False

    def take(self, line: str) -> None:
        """Take in a row; raises LineUnusable if it cannot be used."""
        row = row_of(line, self._delimiter)
        if len(row) < len(self._columns):
            raise LineUnusable("too few columns")
        self.add(dict(zip(self._columns, row, strict=False)), self._names)


def _first(pattern: re.Pattern[str], names: Mapping[str, str]) -> tuple[str, str | None] | None:
    matches = ((name, pattern.fullmatch(name)) for name in names)
    return next(((name, match[1]) for name, match in matches if match), None)


def _short(unit: str | None) -> str:
    """Return s, ms, us or ns for a unit in whatever length."""
    starts = {"s": "s", "mil": "ms", "ms": "ms", "mic": "us", "us": "us", "n": "ns"}
    return next(short for start, short in starts.items() if unit and unit.startswith(start))


def _is_failed(status: object) -> bool:
    try:
        return int(str(status)) >= _FAILED
    except ValueError:
        return False


def _tokens(value: object) -> float:
    if value in (None, ""):
        return nan
    try:
        number = float(str(value))
    except ValueError:
        raise LineUnusable("the number of tokens is no number") from None
    if not (isfinite(number) and number >= 0):
        raise LineUnusable("the number of tokens is not a finite number >= 0")
    return number
