"""What can be said of a series before any forecast: how long, how fine, how full of gaps, which seasons."""

from dataclasses import dataclass

import numpy as np

from forecasting.seasons import Season, seasons
from forecasting.series import Series

CALENDAR_MIN = 1e8
"""Times [s] from here on (1973) are calendar times; smaller ones count from the start of a file."""
FINER = (300.0, 60.0, 30.0, 10.0, 5.0, 1.0)
"""Demand is forecast in intervals of five minutes if it is not counted in longer ones …"""
INTERVALS_MIN = 100
"""… or in finer ones, if there would be fewer than this."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch in which nobody counted."""

    start: float
    """From the start of the series [s]."""
    length: float
    """[s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A series and what it shows.

    Attributes
    ----------
    series : Series
        As it is forecast.
    gaps : tuple of Gap
        In order.
    missing : int
        Intervals in them [1].
    requests : float
        All that were counted.
    rate_mean, rate_peak : float
        Over the known intervals, and in the busiest one [1/s].
    seasons : tuple of Season
        The shortest first.
    """

    series: Series
    gaps: tuple[Gap, ...]
    missing: int
    requests: float
    rate_mean: float
    rate_peak: float
    seasons: tuple[Season, ...]

    @property
    def span(self) -> float:
        """From its beginning to its end [s]."""
        return self.series.interval * len(self.series)

    @property
    def has_calendar(self) -> bool:
        """Whether its times are those of a calendar."""
        return self.series.start >= CALENDAR_MIN

    def length(self, period: float) -> int:
        """Return the intervals in a period [s]; 0 if they are not whole."""
        length = round(period / self.series.interval)
        return length if abs(length * self.series.interval - period) < 1e-6 * period else 0


def found_in(series: Series) -> Found:
    """Describe `series`.

    Raises
    ------
    ValueError
        If no count in it is known.
    """
    known = ~np.isnan(series.values)
    if not known.any():
        raise ValueError(f"need at least one known count, got {len(series)} intervals without any")
    counts = series.values[known]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], ~known, [0]])))
    gaps = tuple(
        Gap(first * series.interval, (last - first) * series.interval)
        for first, last in edges.reshape(-1, 2).tolist()
    )
    return Found(
        series=series,
        gaps=gaps,
        missing=int((~known).sum()),
        requests=float(counts.sum()),
        rate_mean=float(counts.mean()) / series.interval,
        rate_peak=float(counts.max()) / series.interval,
        seasons=seasons(series),
    )


def interval_for(span: float, interval: float) -> float:
    """Return in which intervals to look at a series of `span` [s] that is counted in `interval` [s]."""
    ratios = [each / interval for each in FINER if each >= interval]
    whole = [ratio * interval for ratio in ratios if abs(ratio - round(ratio)) < 1e-9]
    return next((each for each in whole if span >= INTERVALS_MIN * each), interval)
