"""Times and durations as logs write them, and how the unit of a bare number is told.

A duration that carries a unit (`12ms`) or stands in a column that names one (`latency_ms`) needs no guess.
Of bare numbers: with a decimal point they are seconds (nginx's $request_time). Whole numbers in an access log
are Apache's %T [s] or %D [µs]: with a median of 1,000 or more they are microseconds, since as seconds half of
the requests would have taken a quarter of an hour; if all are below 1,000 they are seconds, since as
microseconds none would have taken a millisecond. In between, and elsewhere than in access logs, it is asked.
"""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from math import isfinite, isnan, nan

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import Floats

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s)")
_LARGE = 1000
"""Whole numbers from here on are hardly seconds, and below hardly microseconds."""
_EPOCH_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
_EPOCH_MIN = 1e8
"""Times [s] from here on (1973) are calendar times; smaller ones count from the start of the file."""
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_CLF_HOUR = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d)(\.\d+)? ([+-])(\d\d)(\d\d)")


class LineUnusable(Exception):
    """A line that cannot be used; its text is the reason, the same for all lines of the same fault."""


@dataclass(slots=True)
class Durations:
    """Gathers durations whose unit may be told only when all are known.

    Attributes
    ----------
    unit : str or None
        Unit of numbers that carry none, if it is known beforehand.
    whole_numbers : str or None
        Unit of large whole numbers, if nothing else tells; None asks.
    """

    unit: str | None
    whole_numbers: str | None
    notes: list[str] = field(default_factory=list)
    _bare: "array[float]" = field(default_factory=lambda: array("d"))
    _known: "array[float]" = field(default_factory=lambda: array("d"))
    _fractional: bool = False

    def add(self, text: str | float | None) -> None:
        """Take in one duration; None, `-` and nothing mean that it was not told. Raises LineUnusable."""
        if text is None or text in ("", "-"):
            bare, known = nan, nan
        else:
            bare, known = _number_or_seconds(text)
            self._fractional = self._fractional or (not isnan(bare) and "." in str(text))
        self._bare.append(bare)
        self._known.append(known)

    def told_as_seconds_with_a_point(self) -> bool:
        """Whether durations are nginx's: bare seconds with decimals, logged when the request had ended."""
        return self._fractional and self.unit in (None, "s")

    def seconds(self) -> Floats:
        """Return all durations [s], shape (n,); raises UsageError if their unit cannot be told."""
        bare, known = np.array(self._bare), np.array(self._known)
        told = bare[np.isfinite(bare)]
        if not len(told):
            return known
        unit = self.unit or self._told_by_form(told)
        return np.where(np.isfinite(known), known, bare * UNITS[unit])

    def _told_by_form(self, numbers: Floats) -> str:
        median, greatest = float(np.median(numbers)), float(numbers.max())
        if self._fractional or greatest < _LARGE:
            unit, why = "s", "they have decimals" if self._fractional else f"none reaches {_LARGE:,}"
        elif median >= _LARGE and self.whole_numbers:
            unit, why = self.whole_numbers, f"whole numbers, median {median:,.0f}"
        else:
            raise UsageError(
                f"the unit of the durations cannot be told (whole numbers, median {median:,.0f}, "
                f"greatest {greatest:,.0f}); say it with --duration-unit s, ms, us or ns"
            )
        self.notes.append(f"durations are taken as {_UNIT_NAMES[unit]} ({why})")
        return unit


def _number_or_seconds(text: str | float) -> tuple[float, float]:
    """Return a bare number and not-a-number, or not-a-number and the seconds of a number with its unit."""
    try:
        number = float(text)
    except ValueError:
        match = _WITH_UNIT.fullmatch(str(text).strip())
        if match is None:
            raise LineUnusable("the duration is no number") from None
        return nan, float(match[1]) * UNITS[match[2].replace("µ", "u").replace("μ", "u")]
    if not isfinite(number):
        raise LineUnusable("the duration is no number")
    if number < 0:
        raise LineUnusable("the duration is negative")
    return number, nan


def clf_time(text: str) -> tuple[float, float]:
    """Return the calendar time [s] and UTC offset [s] of `13/Jul/1995:09:30:00 -0400`."""
    hour, zone = text[:14], text[20:]
    minute, second = text[15:17], text[18:20]
    if not (text[14:15] == text[17:18] == ":" and minute.isdigit() and second.isdigit()):
        raise LineUnusable("the time cannot be read")
    start, offset = _hour(hour, zone)
    return start + 60 * int(minute) + int(second), offset


@lru_cache(maxsize=4096)
def _hour(hour: str, zone: str) -> tuple[float, float]:
    """Return when an hour of an access log begins, and its UTC offset; most lines share those of the last.

    `zone` may begin with decimals of the second, which then count as part of the beginning.
    """
    match = _CLF_HOUR.fullmatch(hour + zone)
    if match is None or match[2] not in _MONTHS:
        raise LineUnusable("the time cannot be read")
    day, month, year, clock, part, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    try:
        at = datetime(int(year), _MONTHS[month], int(day), int(clock), tzinfo=timezone(offset))
    except ValueError:
        raise LineUnusable("the time cannot be read") from None
    return at.timestamp() + float(part or 0), offset.total_seconds()


def any_time(value: object, unit: float | None = None) -> tuple[float, float]:
    """Return a time [s] and its UTC offset [s], from a number, ISO 8601, or the form of access logs.

    A number is seconds, unless the column says its `unit` [s], or it is so large that it must be milli-,
    micro- or nanoseconds since the epoch.
    """
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever it is, it is tried
    except (TypeError, ValueError):
        return _time_in_words(str(value).strip())
    if not isfinite(number):
        raise LineUnusable("the time cannot be read")
    if unit is None:
        unit = next((unit for least, unit in _EPOCH_UNITS if abs(number) >= least), 1.0)
    return number * unit, 0.0


def _time_in_words(text: str) -> tuple[float, float]:
    if "/" in text:
        return clf_time(text)
    try:
        at = datetime.fromisoformat(_six_decimals(text))
    except ValueError:
        raise LineUnusable("the time cannot be read") from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    offset = at.utcoffset()
    return at.timestamp(), offset.total_seconds() if offset else 0.0


def _six_decimals(text: str) -> str:
    """Cut the decimals of a second to six, the most that the library reads."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


def calendar_start(times: Sequence[float]) -> float:
    """Return the earliest of `times` [s] if they are calendar times, else not-a-number."""
    first = min(times)
    return first if first >= _EPOCH_MIN else nan
