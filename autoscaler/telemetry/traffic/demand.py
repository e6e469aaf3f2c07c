"""Traffic of the past, as a file told it: single requests or counts, and what could not be used."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autoscaler.errors import UsageError
from autoscaler.units import format_duration
from forecasting.series import Series

Floats = NDArray[np.float64]

EXAMPLES_MAX = 3
"""Lines shown for each reason why lines could not be used."""
EXAMPLE_LENGTH = 200
"""Characters kept of such a line."""
INTERVALS_MAX = 50_000_000
"""Of a series; a year and a half of seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Single requests, in the order of their arrival. Not-a-number marks what was not told.

    Attributes
    ----------
    arrivals : ndarray, shape (n,)
        Ascending, from 0 at the first [s].
    service_times : ndarray, shape (n,)
        How long each took [s]; not told for those that failed. What a log calls duration includes the time
        that the request waited inside the system that was measured, unless that logs its queue apart
        (HAProxy does, and it is left out).
    tokens_in, tokens_out : ndarray, shape (n,)
        [1].
    start : float
        Calendar time of the first arrival [s since the epoch]; not-a-number if the file's times are relative.
    utc_offset : float
        By how much the file's clock was ahead of UTC at the first arrival [s].
    """

    arrivals: Floats
    service_times: Floats
    tokens_in: Floats
    tokens_out: Floats
    start: float = float("nan")
    utc_offset: float = 0.0

    def __len__(self) -> int:
        return len(self.arrivals)

    def binned(self, interval: float) -> Series:
        """Count the arrivals in intervals of `interval` [s]; what is left at the end is no interval.

        Raises
        ------
        UsageError
            If that would be more intervals than can be held: a time is far off, or `interval` too short.
        """
        span = float(self.arrivals[-1])
        if span / interval > INTERVALS_MAX:
            raise UsageError(
                f"the requests span {span:,.10g} s; in steps of {interval:g} s that is more than the "
                f"{INTERVALS_MAX:,} intervals that can be held; count in longer steps, or cut the file"
            )
        whole = max(1, int(span // interval))
        counts = np.bincount((self.arrivals // interval).astype(np.int64), minlength=whole)[:whole]
        return Series(counts.astype(float), interval, 0.0 if np.isnan(self.start) else self.start)

    def with_services_drawn(self, rng: np.random.Generator) -> "Requests":
        """Return the same with every service time that was not told drawn from those that were.

        Raises
        ------
        ValueError
            If none was told.
        """
        untold = np.flatnonzero(~np.isfinite(self.service_times))
        told = self.service_times[np.isfinite(self.service_times)]
        if len(untold) and not len(told):
            raise ValueError("need at least one service time that was told")
        services = self.service_times.copy()
        services[untold] = rng.choice(told, len(untold)) if len(untold) else 0.0
        return replace(self, service_times=services)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why some lines could not be used; the first of them with their numbers. `str()` is a sentence."""

    reason: str
    count: int
    examples: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        number, line = self.examples[0]
        return (
            f"{self.count:,} line{'s' * (self.count > 1)} could not be used: {self.reason}; the first is "
            f"line {number}: {line[:70]}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """What a file told.

    Attributes
    ----------
    path : Path
        The file.
    form : str
        What it was taken for: `access log`, `Envoy access log`, `HAProxy log`, `JSON lines`,
        `CSV of requests`, `CSV of counts`, `Prometheus answer`, `OpenAI usage`.
    demand : Requests or Series
        Single requests, or counts an interval; not-a-number where nobody counted.
    lines : int
        Lines (or records of a JSON document) that hold something, the header of a CSV not counted.
    faults : tuple of Fault
        Lines that could not be used, the most frequent reason first.
    notes : tuple of str
        What was assumed in reading: units of durations, a time zone, failed requests, copies of lines left
        out, long silences.
    tokens_in, tokens_out : ndarray, shape (n_intervals,), or None
        Tokens in each interval, where `demand` is a Series and the file tells them; requests have their own.
    zone : str
        By which clock the file tells its times: a name (`Europe/Berlin`) where the reader was told one, else
        `UTC` or an offset (`UTC-04:00`); empty if times are relative.
    models : mapping of str to int
        Requests of each model that the file names, the most frequent first; all of them, also where only one
        was asked for. Empty if it names none.
    """

    path: Path
    form: str
    demand: Requests | Series
    lines: int
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    tokens_in: Floats | None = None
    tokens_out: Floats | None = None
    zone: str = ""
    models: Mapping[str, int] = field(default_factory=dict)

    @property
    def unusable(self) -> int:
        """Lines that could not be used."""
        return sum(fault.count for fault in self.faults)

    def tokens_per_request(self) -> tuple[float, float]:
        """Return the mean tokens in and out of a request [1]; not-a-number where they are not told."""
        if isinstance(self.demand, Requests):
            return _mean(self.demand.tokens_in), _mean(self.demand.tokens_out)
        requests = float(np.nansum(self.demand.values))
        totals = (
            np.nan if tokens is None or requests == 0 else float(np.nansum(tokens)) / requests
            for tokens in (self.tokens_in, self.tokens_out)
        )
        tokens_in, tokens_out = totals
        return tokens_in, tokens_out

    def counted(self, interval: float) -> Series:
        """Return the counts of the file, or its requests counted in intervals of `interval` [s]."""
        return self.demand if isinstance(self.demand, Series) else self.demand.binned(interval)

    def known_counts(self, interval: float) -> Series:
        """Return `counted`, if the count of every interval is known.

        Raises
        ------
        UsageError
            If one is not; the text names the line to mend, or the time at which nobody counted.
        """
        series = self.counted(interval)
        gaps = np.flatnonzero(np.isnan(series.values))
        if not len(gaps):
            return series
        if self.faults:
            number, line = min(example for fault in self.faults for example in fault.examples)
            raise UsageError(
                f"{self.path}:{number}: {line!r} tells no count, and {len(gaps):,} intervals are not known; "
                "mend or remove such lines (an interval that is absent had no requests)"
            )
        raise UsageError(
            f"{self.path}: {len(gaps):,} of {len(series):,} intervals are not known, the first "
            f"{format_duration(float(gaps[0]) * series.interval)} after its start: nobody counted then; "
            "cut the file there"
        )

    def bridged(self, interval: float) -> tuple[Series, str]:
        """Return `counted` with gaps bridged by a straight line, and a sentence that says so, or none.

        For who must have a number for each interval, as a replay must; a forecaster does better with gaps.
        """
        series = self.counted(interval)
        known = np.flatnonzero(np.isfinite(series.values))
        gaps = len(series) - len(known)
        if not gaps:
            return series, ""
        values = np.interp(np.arange(len(series)), known, series.values[known])
        longest = float(np.diff(np.concatenate([[-1], known, [len(series)]])).max() - 1) * series.interval
        return Series(values, series.interval, series.start), (
            f"{gaps:,} of {len(series):,} intervals are not known, {format_duration(longest)} at a stretch "
            "at most; they are taken to lie on a line between their neighbours"
        )


def _mean(values: Floats) -> float:
    told = values[np.isfinite(values)]
    return float(told.mean()) if len(told) else float("nan")
