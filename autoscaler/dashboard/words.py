"""Numbers as people say them, no longer than they need to be."""

import math

UNKNOWN = "–"


def duration(seconds: float) -> str:
    """Say a length of time: "20 ms", "2.4 s", "34 s", "12 min", "3.5 h"."""
    if math.isnan(seconds):
        return UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f}".removesuffix(".0") + " h"


def rate(per_second: float) -> str:
    """Say a rate: "<0.01/s", "0.012/s", "8.25/s", "1200/s"."""
    if math.isnan(per_second):
        return UNKNOWN
    if 0.0 < per_second < 0.01:
        return "<0.01/s"
    return f"{per_second:.0f}/s" if per_second >= 100 else f"{per_second:.3g}/s"


def percent(fraction: float, digits: int = 0) -> str:
    """Say a fraction: "69 %"; never a rounded-up "100 %" for less than all."""
    if math.isnan(fraction):
        return UNKNOWN
    step = 10.0**digits
    hundredths = fraction * 100
    shown = min(round(hundredths * step) / step, 100 - 1 / step) if hundredths < 100 else hundredths
    return f"{shown:.{digits}f}".rstrip("0").rstrip(".") + " %" if digits else f"{shown:.0f} %"


def count(number: int, noun: str) -> str:
    """Say a number of things: "1 replica", "3 replicas"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
