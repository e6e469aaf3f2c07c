"""The times that five fields name, as crontab has them: minute, hour, day of month, month, weekday.

A field is `*`, a number, a range `1-5`, any of these with a step `*/15`, or several of them after one
another, with commas. Weekdays count from Sunday = 0, and 7 is Sunday too. As in crontab(5), if both days
are restricted, one that matches either is named.
"""

import numpy as np
import numpy.typing as npt

from forecasting.distribution import Array
from forecasting.local_time import utc_offset

BOUNDS = {"minute": (0, 59), "hour": (0, 23), "day of month": (1, 31), "month": (1, 12), "weekday": (0, 7)}
Mask = npt.NDArray[np.bool_]


class Cron:
    """A crontab entry's times.

    Parameters
    ----------
    fields : str
        Five, parted by blanks.
    zone : str
        Whose clock they are about.

    Raises
    ------
    ValueError
        If a field cannot be read, or no such zone is known.
    """

    def __init__(self, fields: str, zone: str = "UTC") -> None:
        parts = fields.split()
        if len(parts) != len(BOUNDS):
            raise ValueError(f"need five fields, {', '.join(BOUNDS)}, got {fields!r}")
        utc_offset(zone, 0.0)
        self.zone = zone
        self._named = [_named(name, part) for name, part in zip(BOUNDS, parts, strict=True)]
        self._named[4][0] |= self._named[4][7]
        self._either = parts[2] != "*" and parts[4] != "*"

    def matches(self, moments: Array) -> Mask:
        """Return which of `moments` [s since the epoch], ascending, lie in a minute that is named."""
        local = (moments + _offsets(self.zone, moments)).astype(np.int64).astype("datetime64[s]")
        days, months = local.astype("datetime64[D]"), local.astype("datetime64[M]")
        minute = local.astype("datetime64[m]").astype(np.int64)
        named_minute, named_hour, named_day, named_month, named_weekday = self._named
        at = named_minute[minute % 60] & named_hour[minute // 60 % 24]
        at &= named_month[months.astype(np.int64) % 12 + 1]
        day = named_day[(days - months).astype(np.int64) + 1]
        weekday = named_weekday[(days.astype(np.int64) + 4) % 7]
        return np.asarray(at & (day | weekday if self._either else day & weekday))


def _named(name: str, field: str) -> Mask:
    """Return which numbers a field names, by number."""
    low, high = BOUNDS[name]
    named = np.zeros(high + 1, dtype=bool)
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = (str(low), "-", str(high)) if span == "*" else span.partition("-")
        numbers = (first, last if dash else first, step or "1")
        if not all(number.isdecimal() for number in numbers):
            raise ValueError(f"{name} {field!r}: need *, a number, a range 1-5 or a step */15, not {part!r}")
        begin, end, every = (int(number) for number in numbers)
        if not (low <= begin <= end <= high and every >= 1):
            raise ValueError(f"{name} {field!r}: need numbers from {low} to {high} in order, got {part!r}")
        named[begin : end + 1 : every] = True
    return named


def _offsets(zone: str, moments: Array) -> Array:
    """Return what to add to UTC at each of `moments`, ascending."""
    offsets, done = np.empty(len(moments)), 0
    while done < len(moments):
        offset, same_for = utc_offset(zone, float(moments[done]))
        until = max(int(np.searchsorted(moments, moments[done] + same_for)), done + 1)
        offsets[done:until] = offset
        done = until
    return offsets
