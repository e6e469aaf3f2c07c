"""Where in the week of a named zone a moment lies, by the clock on the wall there.

People come to work by the wall clock. Where clocks change, the same time of day is an hour earlier or
later in seconds since the epoch for half a year, and a profile kept in those seconds would be an hour off
for weeks. Rules of zones come from the standard library; no clock is read here.
"""

from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from forecasting.distribution import Array

DAY = 86_400.0
WEEK = 7 * DAY
MONDAY = 3 * DAY
"""The epoch began on a Thursday, three days into its week [s]."""
WEEKEND = (5, 6)
"""Saturday and Sunday, counted from Monday = 0."""

Rows = npt.NDArray[np.integer[Any]]
"""Places in a week: how many intervals after Monday, 0:00."""


def utc_offset(zone: str, moment: float) -> float:
    """Return by how much clocks in `zone` are ahead of UTC at `moment` [s since the epoch], in seconds.

    Raises
    ------
    ValueError
        If no such zone is known.
    """
    # NumPy makes the datetime that zoneinfo asks for: nothing here can ask what time it is.
    utc = np.datetime64(int(moment // 1), "s").item()
    offset = _zone(zone).fromutc(utc.replace(tzinfo=_zone(zone))).utcoffset()
    return float(offset.total_seconds()) if offset is not None else 0.0


def week_places(zone: str, moments: Array, interval: float) -> Rows:
    """Return in which interval of the local week each of `moments` [s since the epoch] lies.

    Parameters
    ----------
    zone : str
        As in the IANA database: "Europe/Berlin"; "UTC".
    moments : Array, shape (n,)
        In ascending order, and so near to each other that clocks change at most once between them.
    interval : float
        Length of the intervals that the week is cut into [s].

    Returns
    -------
    Rows, shape (n,)
        In 0 … week / interval - 1; 0 is the first interval of Monday.
    """
    first, last = utc_offset(zone, moments[0]), utc_offset(zone, moments[-1])
    offsets: float | Array = first
    if first != last:
        offsets = np.array([utc_offset(zone, moment) for moment in moments.tolist()])
    into_week = (moments + offsets + MONDAY) % WEEK
    return np.asarray(np.floor(into_week / interval + 1e-9) % round(WEEK / interval)).astype(int)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"no time zone is called {name!r}; need a name such as 'Europe/Berlin', and the package tzdata "
            "where the system has no zones"
        ) from error
