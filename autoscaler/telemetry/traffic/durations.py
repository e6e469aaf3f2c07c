"""Durations as logs write them, and how the unit of a bare number is told.

A duration that carries a unit (`12ms`) or stands in a column that names one (`latency_ms`) needs no guess.
Of bare numbers: with a decimal point they are seconds (nginx's $request_time). Whole numbers in an access log
are Apache's %T [s] or %D [µs]: with a median of 1,000 or more they are microseconds, since as seconds half of
the requests would have taken a quarter of an hour; if all are below 1,000 they are seconds, since as
microseconds none would have taken a millisecond. In between, and elsewhere than in access logs, it is asked.
"""

import re
from array import array
from dataclasses import dataclass, field
from math import isfinite, isnan, nan

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic.demand import Floats
from autoscaler.telemetry.traffic.faults import LineUnusable

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s)")
_LARGE = 1000
"""Whole numbers from here on are hardly seconds, and below hardly microseconds."""
_NOT_TOLD = ("", "-", "null", "None")


@dataclass(slots=True)
class Durations:
    """Gathers durations whose unit may be told only when all are known.

    Attributes
    ----------
    unit : str or None
        Unit of numbers that carry none, if it is known beforehand.
    whole_numbers : str or None
        Unit of large whole numbers, if nothing else tells; None asks.
    """

    unit: str | None
    whole_numbers: str | None
    notes: list[str] = field(default_factory=list)
    _bare: "array[float]" = field(default_factory=lambda: array("d"))
    _known: "array[float]" = field(default_factory=lambda: array("d"))
    _fractional: bool = False

    def add(self, text: str | float | None, unit: str | None = None) -> None:
        """Take in one duration in `unit`, if that is known; None, `-` and nothing mean that it was not told.

        Raises
        ------
        LineUnusable
            If it is no length of time; nothing has been taken in then.
        """
        if text is None or text in _NOT_TOLD:
            bare, known = nan, nan
        else:
            bare, known = _number_or_seconds(text)
            if unit and not isnan(bare):
                bare, known = nan, bare * UNITS[unit]
            self._fractional = self._fractional or (not isnan(bare) and "." in str(text))
        self._bare.append(bare)
        self._known.append(known)

    def told_as_seconds_with_a_point(self) -> bool:
        """Whether durations are nginx's: bare seconds with decimals, logged when the request had ended."""
        return self._fractional and self.unit in (None, "s")

    def seconds(self) -> Floats:
        """Return all durations [s], shape (n,); raises UsageError if their unit cannot be told."""
        bare, known = np.array(self._bare), np.array(self._known)
        told = bare[np.isfinite(bare)]
        if not len(told):
            return known
        unit = self.unit or self._told_by_form(told)
        return np.where(np.isfinite(known), known, bare * UNITS[unit])

    def _told_by_form(self, numbers: Floats) -> str:
        median, greatest = float(np.median(numbers)), float(numbers.max())
        if self._fractional or greatest < _LARGE:
            unit, why = "s", "they have decimals" if self._fractional else f"none reaches {_LARGE:,}"
        elif median >= _LARGE and self.whole_numbers:
            unit, why = self.whole_numbers, f"whole numbers, median {median:,.0f}"
        else:
            raise UsageError(
                f"the unit of the durations cannot be told (whole numbers, median {median:,.0f}, "
                f"greatest {greatest:,.0f}); say it with --duration-unit s, ms, us or ns"
            )
        self.notes.append(f"durations are taken as {_UNIT_NAMES[unit]} ({why})")
        return unit


def _number_or_seconds(text: str | float) -> tuple[float, float]:
    """Return a bare number and not-a-number, or not-a-number and the seconds of a number with its unit."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        match = _WITH_UNIT.fullmatch(str(text).strip())
        if match is None:
            raise LineUnusable("the duration is no number") from None
        return nan, float(match[1]) * UNITS[match[2].replace("µ", "u").replace("μ", "u")]
    if not isfinite(number):
        raise LineUnusable("the duration is no number")
    if number < 0:
        raise LineUnusable("the duration is negative")
    return number, nan
