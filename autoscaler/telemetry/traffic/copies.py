"""Lines that a file holds twice, because logs were joined twice or a shipper sent a part of them again.

Equal lines need not be copies: two requests may look the same within the second that a log resolves. But a
log goes on in time. So an equal line that comes again after more lines than were written within a minute of
its time is a copy, for something later must stand between the two. Of a file that is in no order of time this
cannot be said, and nothing is taken for a copy.
"""

import numpy as np
from numpy.typing import NDArray

from autoscaler.telemetry.traffic.demand import Floats

_SLACK = 60.0
"""Lines of one time stand within this of each other [s]: writers buffer."""
_RUNS_MAX = 20
"""A file that goes back in time more often is in no order."""

Places = NDArray[np.int64]


def copies(marks: NDArray[np.int64], times: Floats) -> tuple[Places, Places]:
    """Find copies of earlier lines.

    Parameters
    ----------
    marks : ndarray of int, shape (n,)
        Equal for equal lines, in the order of the file.
    times : ndarray, shape (n,)
        Their times [s].

    Returns
    -------
    copied, of : ndarray of int, shape (n_copies,)
        Places of the copies, ascending, and of the first line that each repeats.
    """
    order = np.argsort(marks, kind="stable")
    repeats = np.flatnonzero(marks[order][1:] == marks[order][:-1]) + 1
    if not len(repeats) or int((np.diff(times) < -_SLACK).sum()) > _RUNS_MAX:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    first = np.arange(len(marks))
    first[repeats] = 0
    firsts = order[np.maximum.accumulate(first)]
    later, earlier = order[repeats], firsts[repeats]
    ascending = np.sort(times)
    written = np.searchsorted(ascending, times[later] + _SLACK, side="right") - np.searchsorted(
        ascending, times[later] - _SLACK
    )
    far = later - earlier > written
    copied, of = later[far], earlier[far]
    in_order = np.argsort(copied)
    return copied[in_order], of[in_order]
