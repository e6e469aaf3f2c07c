"""From samples of many series to requests per interval: resets, gaps, processes that come and go.

Counters are told apart by series, for the sum of two hides the reset of one. Where a series is silent and
comes back, its rise is spread evenly over the silence; where all are silent at once nobody was counting, and
that is a gap. Prometheus holds a sample for five minutes after it heard the last, so what stood still just
before a gap is part of it. A series that begins while others go on is a new process, which counted from zero:
its first value counts, unless it is more than any series ever rose in one step, for then it is an old one
that was only now found.

A rate, or a count, over a window as long as an interval is taken at the end of the interval alone, where it
is of just that time; one over a shorter window is averaged.
"""

from collections.abc import Sequence
from math import nan

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.prometheus_meaning import Floats, Kind, Meaning, Samples

HELD = 300.0
"""A sample stands for so long if none follows [s]: the default of `--query.lookback-delta`."""


def counts(series: Sequence[Samples], points: int, step: float, per_interval: int, what: Meaning) -> Floats:
    """Add up series to requests per interval.

    Parameters
    ----------
    series : sequence of Samples
        At points 0 … `points` - 1, `step` [s] apart.
    points : int
        One more than a multiple of `per_interval`.
    per_interval : int
        Steps in an interval, >= 1.

    Returns
    -------
    ndarray, shape ((points - 1) / per_interval,)
        Not-a-number where the count is not known in full.

    Raises
    ------
    UsageError
        If a value is negative.
    """
    lowest = min((float(each.values.min()) for each in series), default=0.0)
    if lowest < 0:
        raise UsageError(f"--query: gives {lowest:g}; a number of requests cannot be negative")
    if what.kind is Kind.COUNTER:
        return np.asarray(_increases(series, points, int(HELD / step)).reshape(-1, per_interval).sum(axis=1))
    interval = step * per_interval
    levels = _sum(series, points)[1:].reshape(-1, per_interval)
    level = levels[:, -1] if what.window >= interval else levels.mean(axis=1)
    return np.asarray(level * (interval / what.window if what.kind is Kind.COUNT else interval))


def _sum(series: Sequence[Samples], points: int) -> Floats:
    """Return the sum at each point, shape (points,); not-a-number where there is no sample at all."""
    total, seen = np.zeros(points), np.zeros(points, dtype=bool)
    for each in series:
        total[each.places] += each.values
        seen[each.places] = True
    return np.where(seen, total, nan)


def _increases(series: Sequence[Samples], points: int, held: int) -> Floats:
    """Return by how much counters rose from point to point, shape (points - 1,).

    Up to `held` points before a gap may be no more than the last sample.
    """
    total, counted, seen = (
        np.zeros(points - 1),
        np.zeros(points - 1, dtype=bool),
        np.zeros(points, dtype=bool),
    )
    highest = 0.0
    for each in series:
        seen[each.places] = True
        rises = np.diff(each.values)
        rises = np.where(rises < 0, each.values[1:], rises)  # it fell: it began anew, at zero
        neighbours = np.diff(each.places) == 1
        highest = max(highest, float(rises[neighbours].max(initial=0.0)))
        counted[each.places[:-1][neighbours]] = True
        first, last = int(each.places[0]), int(each.places[-1])
        curve = np.concatenate([[0.0], np.cumsum(rises)])
        total[first:last] += np.diff(np.interp(np.arange(first, last + 1), each.places, curve))
    for each in series:
        first = int(each.places[0])
        if first and seen[first - 1] and each.values[0] <= highest:
            total[first - 1] += each.values[0]
            counted[first - 1] = True
    for gap in (np.flatnonzero(counted[:-1] & ~counted[1:]) + 1).tolist():
        before = slice(max(0, gap - held), gap)
        moved = np.flatnonzero(total[before])
        counted[before.start + (int(moved[-1]) + 1 if len(moved) else 0) : gap] = False
    return np.where(counted, total, nan)
