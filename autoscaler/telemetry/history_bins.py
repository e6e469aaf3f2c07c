"""Recorded intervals onto an even grid: what a forecaster learns from.

Intervals are measured on the monotonic clock and placed by the calendar, so they neither start on the
grid nor meet exactly; a program that was down leaves a gap, and a clock set back has lived some
minutes twice. Each interval is taken as evenly filled. Of a stretch that was lived twice the first
telling counts. A bin counts as observed if (nearly) all of it was; otherwise it is NaN, for missing is
not zero.
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_COVERAGE_MIN = 0.99
"""Fraction of a bin that must have been observed: less than 1, for the gaps that clock slew leaves."""


def bin_arrivals(
    starts: FloatArray,
    lengths: FloatArray,
    arrivals: FloatArray,
    *,
    interval: float,
    since: float,
    until: float,
) -> FloatArray:
    """Count arrivals per bin of `interval` seconds over [since, until).

    Parameters
    ----------
    starts, lengths, arrivals : ndarray, shape (n_recorded,)
        Recorded intervals in order of `starts` [s], how long each was [s], what arrived [requests].
    interval : float
        Length of a bin [s], > 0. Of bins finer than what was recorded each gets its even share.
    since, until : float
        Calendar times [s]; only whole bins are returned.

    Returns
    -------
    ndarray, shape (n_bins,)
        Requests per bin, oldest first; NaN where the bin was not fully observed.

    Raises
    ------
    ValueError
        If `interval` is not positive.
    """
    if not interval > 0:
        raise ValueError(f"need interval > 0, got {interval}")
    edges = since + interval * np.arange(max(0, int((until - since) / interval + 1e-9)) + 1)
    if len(starts) == 0:
        return np.full(len(edges) - 1, np.nan)
    ends = starts + lengths
    known_until = np.maximum.accumulate(np.concatenate([[-np.inf], ends[:-1]]))
    fresh_starts = np.maximum(starts, known_until)
    fresh = np.maximum(0.0, ends - fresh_starts)
    counts = np.divide(arrivals * fresh, lengths, out=np.zeros_like(fresh), where=lengths > 0)

    # Both totals rise linearly inside an interval and stand still between two.
    times = np.column_stack([fresh_starts, fresh_starts + fresh]).ravel()
    covered = np.diff(np.interp(edges, times, _staircase(fresh)))
    arrived = np.diff(np.interp(edges, times, _staircase(counts)))
    observed = covered >= _COVERAGE_MIN * interval
    # A sliver missing is made up for in proportion, so that slew does not bias the rate.
    return np.divide(arrived * interval, covered, out=np.full(len(covered), np.nan), where=observed)


def _staircase(steps: FloatArray) -> FloatArray:
    """Return running totals before and after each step, shape (2 * n_steps,)."""
    after = np.cumsum(steps)
    return np.column_stack([np.concatenate([[0.0], after[:-1]]), after]).ravel()
