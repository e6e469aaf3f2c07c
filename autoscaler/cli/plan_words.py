"""How each value of a plan is written, and read: `1.5/s`, `10s`, `p99<2s`, `60%-75%`, `$2.50`, `fixed:30s`.

Each reader takes a word, or a bare number from a file, and raises ValueError, whose text says what is
allowed.
"""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from autoscaler.plan.question import Band, WaitBound
from autoscaler.queueing.impatience import ExponentialPatience, FixedPatience, Patience
from autoscaler.queueing.peakedness import SCV_MAX
from autoscaler.units import DURATION_FORM, RATE_FORM, parse_duration, parse_fraction, parse_rate

_COUNT_MAX = 10_000_000
_SLOTS_MAX = 10_000
_BATCH_MAX = 1024  # a queue of larger batches takes minutes to solve
_TOKENS_MAX = 1e9
_TIME_MAX = 604_800.0  # [s], a week: nobody waits longer, or is served longer
_TIME_LEAST = 1e-6  # [s]
_TIME_FORM = f"{DURATION_FORM}, at most 1w"
_WAIT_FORM = "a wait objective such as p99<2s, p99.9<500ms or mean<1s"
_BAND_FORM = "a band such as 60%-75% or 0.6-0.75, above 0 and not above 100 %"
_PRICE_FORM = "a price an hour such as 2.50, $2.50 or 2.50 EUR"
_PATIENCE_FORM = (
    "a time above 0, at most 1w, such as 30s (clients leave after so long on average), "
    "or fixed:30s (all then)"
)
_EXPONENT = re.compile(r"\d[eE][+-]?\d")
_WAIT = re.compile(r"(?:p(\d+(?:\.\d+)?)|(mean|average))\s*(?:<=?|≤)\s*(.+)", re.IGNORECASE)


def _duration(word: object) -> float:
    seconds = _part(word)
    if seconds < _TIME_LEAST:
        raise ValueError(f"{_TIME_FORM}, above 0: at least 1us")
    return seconds


def _part(word: object) -> float:
    seconds = _parsed(parse_duration, word, DURATION_FORM)
    if seconds > _TIME_MAX:
        raise ValueError(_TIME_FORM)
    return seconds


def _rate(word: object) -> float:
    form = RATE_FORM if _EXPONENT.search(str(word)) is None else f"{RATE_FORM}, without an exponent"
    rate = _parsed(parse_rate, word, form)
    if rate <= 0:
        raise ValueError(f"{RATE_FORM}, above 0")
    return rate


def _scv(word: object) -> float:
    number = _number(word)
    if number is None or not 0 <= number <= SCV_MAX:
        raise ValueError(f"a number between 0 and {SCV_MAX:g}; 1 is Poisson arrivals, exponential service")
    return number


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(word: object) -> int:
        number = _number(word)
        if number is None or number != int(number) or not least <= number <= most:
            raise ValueError(f"a whole number, at least {least}, at most {most:,}")
        return int(number)

    return read


def _tokens(word: object) -> float:
    number = _number(word)
    if number is None or not 1 <= number <= _TOKENS_MAX:
        raise ValueError(f"a number of tokens, at least 1, at most {_TOKENS_MAX:,.0f}")
    return number


def _wait(word: object) -> WaitBound:
    match = _WAIT.fullmatch(str(word).strip())
    if match is None:
        raise ValueError(_WAIT_FORM)
    seconds = _parsed(parse_duration, match[3], _WAIT_FORM)
    if match[2]:
        if seconds <= 0:
            raise ValueError(f"{_WAIT_FORM}; a mean of 0 would take servers without end")
        return WaitBound(seconds, None)
    quantile = float(Fraction(match[1]) / 100)
    if not 0 < quantile < 1:
        raise ValueError(f"{_WAIT_FORM}; the percentile above 0 and below 100")
    return WaitBound(seconds, quantile)


def _band(word: object) -> Band:
    low, dash, high = str(word).replace("–", "-").partition("-")
    if "%" in high and "%" not in low:
        low += "%"
    try:
        band = Band(parse_fraction(low), parse_fraction(high))
    except ValueError:
        raise ValueError(_BAND_FORM) from None
    if not dash or not 0 < band.low < band.high <= 1:
        raise ValueError(f"{_BAND_FORM}, the lower edge first")
    return band


def _price(word: object) -> tuple[float, str]:
    match = re.fullmatch(
        r"([$€£¥])?\s*(\d+(?:\.\d+)?|\.\d+)\s*([$€£¥]|[A-Za-z]{3})?(?:\s*/\s*h(?:our)?)?", str(word).strip()
    )
    if match is None or (match[1] and match[3]):
        raise ValueError(_PRICE_FORM)
    return float(match[2]), (match[1] or match[3] or "").upper()


def _patience(word: object) -> Patience:
    kind, colon, rest = str(word).rpartition(":")
    seconds = _parsed(parse_duration, rest, _PATIENCE_FORM)
    if not _TIME_LEAST <= seconds <= _TIME_MAX or (colon and kind != "fixed"):
        raise ValueError(_PATIENCE_FORM)
    return FixedPatience(seconds) if kind else ExponentialPatience(seconds)


def _number(word: object) -> float | None:
    if isinstance(word, bool):
        return None
    try:
        number = float(word)  # type: ignore[arg-type]  # whatever it is, it is tried
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _parsed(parse: Callable[[object], float], word: object, form: str) -> float:
    try:
        return parse(word)
    except ValueError:
        raise ValueError(form) from None


READERS: Mapping[str, Callable[[object], Any]] = {
    "arrival_rate": _rate,
    "service_time": _duration,
    "arrival_scv": _scv,
    "service_scv": _scv,
    "slots": _whole(1, _SLOTS_MAX),
    "wait": _wait,
    "band": _band,
    "price": _price,
    "replicas_min": _whole(0, _COUNT_MAX),
    "replicas_max": _whole(1, _COUNT_MAX),
    "patience": _patience,
    "batch_alpha": _part,
    "batch_beta": _part,
    "batch_max": _whole(1, _BATCH_MAX),
    "step_alpha": _part,
    "step_beta": _part,
    "tokens_out": _tokens,
    "tokens_in": _tokens,
    "prefill_rate": _rate,
    "token_time": _duration,
}
"""How each value is read."""
