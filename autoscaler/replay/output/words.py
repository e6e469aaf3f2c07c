"""Figures as people read them: waits, shares, multiples, lengths of time, GPU-hours and money."""

import math
from dataclasses import dataclass

_SYMBOLS = "$€£¥"
_DAY, _HOUR, _MINUTE = 86_400.0, 3600.0, 60.0


def wait(seconds: float) -> str:
    """Say a wait: "0", "228 ms", "4.6 s", "12 min", "3.1 h"; one that never ended is "no end"."""
    if math.isinf(seconds):
        return "no end"
    if seconds < 0.0005:
        return "0"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    for size, unit, most in ((1.0, "s", 99.5), (_MINUTE, "min", 5400.0)):
        if seconds < most:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / _HOUR)} h"


def share(fraction: float) -> str:
    """Say a share, finer near 0 and 1: "67 %", "0.4 %", "99.93 %"; "–" if nothing is known."""
    if math.isnan(fraction):
        return "–"
    hundredths = 100 * fraction
    near = min(abs(hundredths), abs(100 - hundredths))
    digits = 0 if near == 0 or near >= 9.5 else 1 if near >= 1.95 else 2
    told = f"{hundredths:.{digits}f}"
    # Almost all is not all, and almost none is not none.
    if near > 0 and float(told) in (0.0, 100.0):
        return "<0.01 %" if fraction < 0.5 else ">99.99 %"
    return f"{told.rstrip('0').rstrip('.') if digits else told} %"


def multiple(ratio: float) -> str:
    """Say how many times: "1.39"; "–" of nothing."""
    return f"{ratio:.2f}" if math.isfinite(ratio) else "–"


def hours(gpu_hours: float) -> str:
    """Say GPU-hours: "0.42", "8.7", "1,052"."""
    if gpu_hours >= 100:
        return f"{gpu_hours:,.0f}"
    return f"{gpu_hours:.1f}" if gpu_hours >= 1 else f"{gpu_hours:.2g}"


def span(seconds: float) -> str:
    """Say a length of time: "36 h", "7 days", "25 min", "40 s"."""
    if seconds >= 3 * _DAY:
        return f"{_three_digits(seconds / _DAY)} days"
    for size, unit in ((_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds)} s"


def rate(per_second: float) -> str:
    """Say a rate: "0.032/s", "8.37/s", "4,870/s"."""
    return f"{per_second:,.0f}/s" if per_second >= 100 else f"{per_second:.3g}/s"


def count(number: int, noun: str) -> str:
    """Say so many: "1 replica", "1,200 requests"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


@dataclass(frozen=True, slots=True)
class Price:
    """What a GPU costs for an hour.

    Attributes
    ----------
    gpu_hour : float
        In `currency`.
    currency : str
        A sign ("$"), three letters ("EUR"), or nothing.
    """

    gpu_hour: float
    currency: str = ""

    def said(self, amount: float) -> str:
        """Say an amount of money: "$37.50", "1,052 EUR"."""
        number = f"{amount:,.2f}" if amount < 100 else f"{amount:,.0f}"
        if self.currency in _SYMBOLS:
            return f"{self.currency}{number}"
        return f"{number} {self.currency}"

    def of(self, gpu_hours: float) -> str:
        """Say what so many GPU-hours cost."""
        return self.said(gpu_hours * self.gpu_hour)


def _three_digits(number: float) -> str:
    """Write with one digit after the point below 10, whole above."""
    return f"{number:.1f}".removesuffix(".0") if number < 9.95 else f"{number:.0f}"
