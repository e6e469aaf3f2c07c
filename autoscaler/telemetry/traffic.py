"""Traffic of the past, as a file told it: single requests or counts, and what could not be used."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autoscaler.errors import UsageError
from forecasting.series import Series

Floats = NDArray[np.float64]

EXAMPLES_MAX = 3
"""Lines shown for each reason why lines could not be used."""


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Single requests, in the order of their arrival. Not-a-number marks what was not told.

    Attributes
    ----------
    arrivals : ndarray, shape (n,)
        Ascending, from 0 at the first [s].
    service_times : ndarray, shape (n,)
        How long each took [s]; not told for those that failed.
    tokens_in, tokens_out : ndarray, shape (n,)
        [1].
    start : float
        Calendar time of the first arrival [s since the epoch]; not-a-number if the file's times are relative.
    utc_offset : float
        By how much the file's clock is ahead of UTC [s].
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
        """Count the arrivals in intervals of `interval` [s]; what is left at the end is no interval."""
        whole = max(1, int(self.arrivals[-1] // interval))
        counts = np.bincount((self.arrivals // interval).astype(np.int64), minlength=whole)[:whole]
        return Series(counts.astype(float), interval, 0.0 if np.isnan(self.start) else self.start)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why some lines could not be used; the first of them with their numbers."""

    reason: str
    count: int
    examples: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """What a file told.

    Attributes
    ----------
    path : Path
        The file.
    form : str
        What it was taken for: `access log`, `JSON lines`, `CSV of requests`, `CSV of counts`.
    demand : Requests or Series
        Single requests, or counts an interval.
    lines : int
        Lines that hold something, the header of a CSV not counted.
    faults : tuple of Fault
        Lines that could not be used, the most frequent reason first.
    notes : tuple of str
        What was assumed in reading: units of durations, failed requests left out.
    """

    path: Path
    form: str
    demand: Requests | Series
    lines: int
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unusable(self) -> int:
        """Lines that could not be used."""
        return sum(fault.count for fault in self.faults)

    def counted(self, interval: float) -> Series:
        """Return the counts of the file, or its requests counted in intervals of `interval` [s]."""
        return self.demand if isinstance(self.demand, Series) else self.demand.binned(interval)

    def known_counts(self, interval: float) -> Series:
        """Return `counted`, if the count of every interval is known.

        Raises
        ------
        UsageError
            If one is not; the text names the line to mend.
        """
        series = self.counted(interval)
        unknown = int(np.isnan(series.values).sum())
        if unknown:
            number, line = min(example for fault in self.faults for example in fault.examples)
            raise UsageError(
                f"{self.path}:{number}: {line!r} tells no count, and {unknown:,} intervals are not known; "
                "mend or remove such lines (an interval that is absent had no requests)"
            )
        return series


@dataclass(slots=True)
class FaultCount:
    """Counts lines that cannot be used, by reason, and keeps the first of each."""

    _counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, reason: str, number: int, line: str) -> None:
        """Take note of line `number`."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) < EXAMPLES_MAX:
            examples.append((number, line.strip()))

    def faults(self) -> tuple[Fault, ...]:
        """Everything noted, the most frequent reason first."""
        by_count = sorted(self._counts.items(), key=lambda item: -item[1])
        return tuple(Fault(reason, count, tuple(self._examples[reason])) for reason, count in by_count)
