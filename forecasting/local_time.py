"""What the clock on the wall shows in a named zone.

People come to work by the wall clock. Where clocks change, the same time of day is an hour earlier or
later in seconds since the epoch for half a year, and a profile kept in those seconds would be an hour off
for weeks. Rules of zones come from the standard library; no clock is read here.
"""

from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

DAY = 86_400.0
WEEK = 7 * DAY
MONDAY = 3 * DAY
"""The epoch began on a Thursday, three days into its week [s]."""
WEEKEND = (5, 6)
"""Saturday and Sunday, counted from Monday = 0."""


def utc_offset(zone: str, moment: float) -> tuple[float, float]:
    """Return what to add to UTC for the time on the wall, and for how long that stays so.

    Parameters
    ----------
    zone : str
        As in the IANA database: "Europe/Berlin"; "UTC".
    moment : float
        [s since the epoch].

    Returns
    -------
    offset : float
        [s], negative west of Greenwich.
    same_for : float
        The offset is the same for so long from `moment` on; a week at most [s].

    Raises
    ------
    ValueError
        If no such zone is known.
    """
    offset = _offset(zone, moment)
    if _offset(zone, moment + WEEK) == offset:
        return offset, WEEK
    same, other = 0, int(WEEK)
    while other - same > 1:
        middle = (same + other) // 2
        same, other = (middle, other) if _offset(zone, moment + middle) == offset else (same, middle)
    return offset, float(other)


def _offset(zone: str, moment: float) -> float:
    # NumPy makes the datetime that zoneinfo asks for: nothing here can ask what time it is.
    utc = np.datetime64(int(moment // 1), "s").item().replace(tzinfo=_zone(zone))
    offset = _zone(zone).fromutc(utc).utcoffset()
    return float(offset.total_seconds()) if offset is not None else 0.0


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"no time zone is called {name!r}; need a name such as 'Europe/Berlin', and the package tzdata "
            "where the system has no zones"
        ) from error
