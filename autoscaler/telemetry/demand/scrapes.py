"""For how long Prometheus has scraped without a gap: what its `rate` makes of less is too little.

`rate` divides what came within a window by all of the window, and knows an increase only between two samples
of one series. So for a while after it was away it gives a part of the true rate, and nothing in the answer
says so. A window that begins where the scrapes began again gives all of it. A series that begins while others
go on is another matter: it is a new door, which takes over what the others have lost.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median_low

_GAP = 2.5
"""So many times the usual pause between two samples without any is a gap [1]: one or two may fail."""
_FEWEST = 3.0
"""Rates over fewer pauses than that are more noise than rate [1]."""


def scraped_for(series: Sequence[Sequence[float]], now: float, window: float) -> float | None:
    """Return how much of the window before `now` was scraped without a gap [s]; None if it is too little.

    Parameters
    ----------
    series : sequence of sequence of float
        Times of the samples of each series within the window [s], the oldest first.
    now, window : float
        End and length of the window [s].

    Examples
    --------
    >>> scraped_for([[2.0, 7.0, 42.0, 47.0, 52.0, 57.0]], now=60.0, window=60.0)
    18.0
    """
    pauses = [later - earlier for times in series for earlier, later in pairwise(times)]
    if not pauses:
        return None
    pause = median_low(pauses)
    times = sorted(at for each in series for at in each)
    begins = [now - window, *times, now]
    gaps = [later for earlier, later in pairwise(begins) if later - earlier > _GAP * pause]
    seen = now - gaps[-1] if gaps else window
    return seen if seen >= min(window, _FEWEST * pause) else None
