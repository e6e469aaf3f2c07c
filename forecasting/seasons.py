"""Which seasons a series has: a day, a week, both or none; found by autocorrelation.

Counts are replaced by their ranks first, so that a spike or a heavy tail weighs no more than any other
count (Spearman's correlation). A season shows as a correlation of the series with itself one period
earlier that is not there half a period earlier: what merely wanders is the more alike the nearer it is.
The week is looked for in what the day does not explain, and must tie a day closer to the same weekday
than to the days between.

Candidates are those that people make, a day and a week. A free search over all lags was tried: it finds
multiples, neighbours and artefacts of a day, and nothing that was there but those two.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from forecasting.distribution import Array
from forecasting.series import Series

DAY = 86_400.0
WEEK = 7 * DAY
PERIODS_MIN = 2.0
"""A season must have been seen so often to be told from a trend."""
CORRELATION_MIN = 0.2
"""Less is no season worth its parameters."""
ADVANTAGE_MIN = 0.1
"""By so much the correlation one period back must exceed each of those at the lags between."""
SIGMAS = 4.0
"""So many standard errors of a correlation of noise it must exceed, too."""
PER_DAY_MIN = 4
"""With fewer counts a day has no shape."""


@dataclass(frozen=True, slots=True)
class Season:
    """A period after which a series repeats.

    Attributes
    ----------
    period : float
        [s].
    correlation : float
        Of the ranks with those one period earlier, in [-1, 1]; for a week, of what is left without the day.
    explained : float
        Share of the variance of the ranks that the mean over all periods explains, beyond shorter seasons,
        in [0, 1].
    """

    period: float
    correlation: float
    explained: float


def seasons(series: Series) -> tuple[Season, ...]:
    """Return the seasons of `series`, the shortest first; gaps are left out.

    Notes
    -----
    A period that is no whole number of intervals, or was not seen twice, is not looked for.
    """
    known = ~np.isnan(series.values)
    if known.sum() < 2 or np.ptp(series.values[known]) == 0:
        return ()
    ranks = np.full(len(series), np.nan)
    ranks[known] = stats.rankdata(series.values[known])
    ranks -= np.nanmean(ranks)
    total, found = float(np.nanvar(ranks)), []
    day, week = (_length(series, period) for period in (DAY, WEEK))
    if day:
        profile = _profile(ranks, day)
        if (correlation := _season_at(ranks, day)) is not None:
            found.append(Season(DAY, correlation, float(np.nanvar(profile)) / total))
            ranks = ranks - profile
    if week and (correlation := _season_at(ranks, week)) is not None:
        found.append(Season(WEEK, correlation, float(np.nanvar(_profile(ranks, week))) / total))
    return tuple(found)


def _length(series: Series, period: float) -> int:
    """Return the intervals in a period; 0 if they are not whole, or it was not seen often enough."""
    length = round(period / series.interval)
    whole = abs(length * series.interval - period) < 1e-6 * period
    seen = len(series) >= PERIODS_MIN * length
    return length if whole and seen and length >= PER_DAY_MIN * period / DAY else 0


def _season_at(ranks: Array, length: int) -> float | None:
    """Return the correlation one period back, if it is strong and not that of all lags."""
    at, pairs = _correlation(ranks, length)
    between = [_correlation(ranks, round(length * share))[0] for share in (0.3, 0.4, 0.5, 0.6, 0.7)]
    least = max(CORRELATION_MIN, SIGMAS / np.sqrt(max(pairs, 1)), max(between) + ADVANTAGE_MIN)
    return at if at >= least else None


def _correlation(ranks: Array, lag: int) -> tuple[float, int]:
    """Return the correlation of the ranks with those `lag` earlier, and how many pairs are known."""
    now, then = ranks[lag:], ranks[:-lag]
    both = ~np.isnan(now) & ~np.isnan(then)
    now, then = now[both], then[both]
    scale = float(np.sqrt(np.mean(now**2) * np.mean(then**2))) if len(now) else 0.0
    return (float(np.mean(now * then)) / scale if scale > 0 else 0.0), len(now)


def _profile(ranks: Array, length: int) -> Array:
    """Return the mean of each place in the period, repeated over the series, shape (n,)."""
    padded = np.full(-(-len(ranks) // length) * length, np.nan)
    padded[: len(ranks)] = ranks
    periods = padded.reshape(-1, length)
    seen = (~np.isnan(periods)).sum(axis=0)
    means = np.nansum(periods, axis=0) / np.maximum(seen, 1)
    return np.asarray(np.tile(means, len(periods))[: len(ranks)])
