"""Times as files write them, and the clock that they were read from.

A number is seconds, unless its column names a unit, or it is so large that it must be milli-, micro- or
nanoseconds since the epoch. Words are ISO 8601, or the form of access logs. Times that name no zone are read
by the clock of the zone that was asked for, else by UTC; of an hour that occurs twice when summer time ends,
the second is taken once times have passed the first.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import isnan, nan
from zoneinfo import ZoneInfo

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic.faults import LineUnusable

EPOCH_MIN = 1e8
"""Times [s] from here on (1973) are calendar times; smaller ones count from the start of the file."""
_TIME_MIN, _TIME_MAX = -6e10, 2.5e11
"""Years 69 and 9892 [s]; what is beyond is no time."""
_EPOCH_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_LOG_HOUR = re.compile(r"(\d\d?)/(\w{3})/(\d{4}):(\d\d)")
_LOG_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)")
_LOG_END = re.compile(r":(\d\d):(\d\d)([.,]\d+)? ?([+-]\d\d:?\d\d)?")
_ISO_ZONE = re.compile(r"(.*\d)\s*([+-]\d\d:?\d\d|UTC|GMT|Z)")
_HOURS_KEPT = 4096
_UNREADABLE = "the time cannot be read"


class Clock:
    """Reads times, and remembers what they said of their zone.

    Parameters
    ----------
    zone : str or None
        Name of the zone whose clock people go by: of times that name none, and for telling the hour of the
        day of those that do. UTC if it is not told.
    distinct : bool
        Whether no two times are alike, so that one which is read again is the second of its kind.

    Attributes
    ----------
    utc_offset : float or None
        By how much the clock of the first time that named a zone was ahead of UTC [s].
    zoneless : int
        Times in words that named no zone.
    """

    def __init__(self, zone: str | None, *, distinct: bool = False) -> None:
        self._name = zone
        self._distinct = distinct
        self._zone: tzinfo = _zone(zone) if zone else UTC
        self._hours: dict[str, tuple[float, float, float]] = {}
        self._last = -float("inf")
        self.utc_offset: float | None = None
        self.zoneless = 0

    def read(self, value: object, unit: float | None = None) -> float:
        """Return a time [s]: since the epoch, or since whenever a file of relative times began.

        `unit` [s] is that of a number, if its column names one. Raises LineUnusable if it is no time.
        """
        try:
            number = float(value)  # type: ignore[arg-type]  # whatever it is, it is tried
        except (TypeError, ValueError):
            return _between_the_years(self._words(str(value).strip()))
        if unit is None:
            unit = next((unit for least, unit in _EPOCH_UNITS if abs(number) >= least), 1.0)
        return _between_the_years(number * unit)

    def read_log(self, text: str) -> float:
        """Return the calendar time [s] of `13/Jul/1995:09:30:00 -0400`, or without a zone."""
        # Most lines share the hour with the last, so only the end is read anew: hour[:14] + :MM:SS + zone.
        hour, minute, second, zone = text[:14], text[15:17], text[18:20], text[21:]
        if len(text) == 26 and text[20] == " " and minute.isdecimal() and second.isdecimal():
            begins, offset, _ = self._hours.get(hour + zone) or self._log_hour(hour, zone)
            if self.utc_offset is None:
                self.utc_offset = offset
            return begins + 60 * int(minute) + int(second)
        return self._log_odd(text)

    def _log_odd(self, text: str) -> float:
        """Read what has decimals of a second, no zone, or a day of one digit."""
        hour = _LOG_HOUR.match(text)
        end = _LOG_END.fullmatch(text, hour.end()) if hour else None
        if hour is None or end is None:
            raise LineUnusable(_UNREADABLE)
        within = 60 * int(end[1]) + int(end[2]) + float((end[3] or ".0").replace(",", "."))
        begins, offset, again = self._hours.get(hour[0] + (end[4] or "")) or self._log_hour(
            hour[0], end[4] or ""
        )
        if end[4]:
            self.utc_offset = offset if self.utc_offset is None else self.utc_offset
            return begins + within
        return self._zoneless(begins + within, again + within)

    def _log_hour(self, hour: str, zone: str) -> tuple[float, float, float]:
        """Return when an hour begins [s], its UTC offset [s], and when it begins the second time."""
        match = _LOG_HOUR.fullmatch(hour)
        of = _LOG_ZONE.fullmatch(zone)
        if match is None or match[2] not in _MONTHS or (zone and of is None):
            raise LineUnusable(_UNREADABLE)
        day, month, year, clock = match.groups()
        sign = -1 if zone[:1] == "-" else 1
        try:
            where = timezone(sign * timedelta(hours=int(of[2]), minutes=int(of[3]))) if of else self._zone
            at = datetime(int(year), _MONTHS[month], int(day), int(clock), tzinfo=where)
            offset = (at.utcoffset() or timedelta()).total_seconds()
            begins, again = at.timestamp(), at.replace(fold=1).timestamp()
        except (ValueError, OverflowError):
            raise LineUnusable(_UNREADABLE) from None
        if len(self._hours) >= _HOURS_KEPT:
            self._hours.clear()
        self._hours[hour + zone] = begins, offset, again
        return begins, offset, again

    def _words(self, text: str) -> float:
        if "/" in text:
            return self.read_log(text)
        try:
            at = _iso(text)
            if at.tzinfo is None:
                at = at.replace(tzinfo=self._zone)
                return self._zoneless(at.timestamp(), at.replace(fold=1).timestamp())
            if self.utc_offset is None:
                self.utc_offset = (at.utcoffset() or timedelta()).total_seconds()
            return at.timestamp()
        except (ValueError, OverflowError):
            raise LineUnusable(_UNREADABLE) from None

    def _zoneless(self, first: float, second: float) -> float:
        """Return which of the two times is meant by a clock that shows it twice."""
        self.zoneless += 1
        again = first < self._last or (self._distinct and first == self._last)
        self._last = second if again and second > first else first
        return self._last

    def offset_at(self, start: float) -> float:
        """Return by how much the file's clock is ahead of UTC [s] at the calendar time `start` [s]."""
        if self._name or self.utc_offset is None:
            at = datetime.fromtimestamp(start, self._zone)
            return (at.utcoffset() or timedelta()).total_seconds()
        return self.utc_offset

    def name(self, start: float) -> str:
        """Return the name of the file's clock; nothing if `start` [s], of its first time, is not-a-number."""
        if isnan(start):
            return ""
        if self._name or not self.utc_offset:
            return self._name or "UTC"
        return str(timezone(timedelta(seconds=self.utc_offset)))

    def notes(self) -> tuple[str, ...]:
        """Say what was assumed."""
        if not self.zoneless or self._name:
            return ()
        return ("times name no zone: they are taken as UTC",)


def calendar_start(times: Sequence[float]) -> float:
    """Return the earliest of `times` [s] if they are calendar times, else not-a-number."""
    first = min(times)
    return first if first >= EPOCH_MIN else nan


def in_words(seconds: float) -> str:
    """Return a calendar time for people."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _between_the_years(seconds: float) -> float:
    """Return a time [s] that is one; not-a-number is none, either."""
    if not _TIME_MIN < seconds < _TIME_MAX:
        raise LineUnusable(_UNREADABLE)
    return seconds


def _iso(text: str) -> datetime:
    """Read ISO 8601, also with a space before the zone, or one in letters."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        spaced = _ISO_ZONE.fullmatch(text)
        if spaced is None:
            raise
        return datetime.fromisoformat(spaced[1] + (spaced[2] if spaced[2][0] in "+-" else "Z"))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise UsageError(
            f"time zone {name}: there is none of that name; write it as Europe/Berlin or UTC"
        ) from error
