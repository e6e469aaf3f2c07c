"""Quantities as people write them: `250ms`, `1h30m`, `64MiB`, `60/min`, `75%`, `127.0.0.1:8080`.

Each `parse_…` takes what stands in a file or on a command line, text or bare number, and returns the
unit used inside: seconds, bytes, 1/s, a fraction, an address. Whatever cannot be read raises
`ValueError`, whose text says how it is written. Each `format_…` writes the shortest form that
`parse_…` reads back.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite

DURATION_FORM = "a time such as 250ms, 10s, 5m, 1h30m, 1d or 4w (a bare number is seconds)"
SIZE_FORM = "a size such as 512KiB, 64MiB or 1GB (a bare number is bytes)"
RATE_FORM = "a rate such as 1.5/s, 60/min or 3600/h (a bare number is per second)"
FRACTION_FORM = "a fraction such as 0.75 or 75%"
ADDRESS_FORM = "an address such as 127.0.0.1:8080, [::1]:8080 or :8080 (every interface)"

_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_WEEK = 604_800_000
_MILLISECONDS = {"w": _WEEK, "d": 86_400_000, "h": 3_600_000, "min": 60_000, "m": 60_000, "s": 1_000, "ms": 1}
_SECONDS = {unit: Fraction(n, 1000) for unit, n in _MILLISECONDS.items()} | {"us": Fraction(1, 1_000_000)}
_DURATION = re.compile(rf"(?:(?:{_NUMBER})\s*(?:ms|us|min|[wdhms])\s*)+")
_DURATION_PART = re.compile(rf"({_NUMBER})\s*(ms|us|min|[wdhms])")
_SIZE = re.compile(rf"({_NUMBER})\s*(?:([kmgt]?)(i?)b?)", re.IGNORECASE)
_RATE = re.compile(rf"({_NUMBER})\s*/\s*(?:(ms|min|[dhms])|(second|minute|hour|day))")
_LONG_NAMES = {"second": "s", "minute": "m", "hour": "h", "day": "d"}
_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. No host is every interface; port 0 asks the system for a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_duration(given: object) -> float:
    """Return a length of time [s], >= 0; parts add up, as in `1h30m`."""
    if (bare := _bare_number(given)) is not None:
        return _at_least_zero(bare, DURATION_FORM)
    text = _text(given, DURATION_FORM)
    if not _DURATION.fullmatch(text):
        raise ValueError(DURATION_FORM)
    parts = _DURATION_PART.findall(text)
    return float(sum(Fraction(number) * _SECONDS[unit] for number, unit in parts))


def parse_size(given: object) -> int:
    """Return a number of bytes, >= 0; KiB, MiB, GiB, TiB are powers of 1024, kB, MB, GB, TB of 1000."""
    if (bare := _bare_number(given)) is not None:
        return round(_at_least_zero(bare, SIZE_FORM))
    match = _SIZE.fullmatch(_text(given, SIZE_FORM))
    if match is None or (match[3] and not match[2]):
        raise ValueError(SIZE_FORM)
    power = "kmgt".index(match[2].lower()) + 1 if match[2] else 0
    return round(Fraction(match[1]) * (1024 if match[3] else 1000) ** power)


def parse_rate(given: object) -> float:
    """Return events per second, >= 0."""
    if (bare := _bare_number(given)) is not None:
        return _at_least_zero(bare, RATE_FORM)
    match = _RATE.fullmatch(_text(given, RATE_FORM))
    if match is None:
        raise ValueError(RATE_FORM)
    return float(Fraction(match[1]) / _SECONDS[match[2] or _LONG_NAMES[match[3]]])


def parse_fraction(given: object) -> float:
    """Return a share in [0, 1]; percent only with its sign, so that 75 is not taken for 0.75 in silence."""
    bare = _bare_number(given)
    if bare is None:
        match = re.fullmatch(rf"({_NUMBER})\s*%", _text(given, FRACTION_FORM))
        if match is None:
            raise ValueError(FRACTION_FORM)
        bare = float(Fraction(match[1]) / 100)
    if not 0 <= bare <= 1:
        raise ValueError(FRACTION_FORM)
    return bare


def parse_address(given: object) -> Address:
    """Return host and port; no host is every interface, of IPv4 and of IPv6."""
    text = _text(given, ADDRESS_FORM)
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\s:\[\]/]*)):(\d{1,5})", text)
    if match is None or int(match[3]) > _PORT_MAX:
        raise ValueError(ADDRESS_FORM)
    return Address(match[1] or match[2] or "", int(match[3]))


def format_duration(seconds: float) -> str:
    """Return the shortest exact form, in the largest unit that leaves a whole number: 300 -> `5m`."""
    exact = Fraction(repr(float(seconds)))
    for unit in ("d", "h", "m", "s", "ms"):
        if exact >= _SECONDS[unit] and (exact / _SECONDS[unit]).denominator == 1:
            return f"{exact / _SECONDS[unit]}{unit}"
    return f"{_plain(seconds)}s"


def format_size(size: int) -> str:
    """Return bytes in the largest binary unit that leaves a whole number: 65536 -> `64KiB`."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return f"{size}B"


def format_rate(rate: float) -> str:
    """Return events per second: 1.5 -> `1.5/s`."""
    return f"{_plain(rate)}/s"


def format_fraction(fraction: float) -> str:
    """Return percent: 0.75 -> `75%`."""
    return f"{(Decimal(repr(float(fraction))) * 100).normalize():f}%"


def _bare_number(given: object) -> float | None:
    """Return a number that carries no unit, or None if `given` is text. True is not a number."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        return float(given)
    except ValueError:
        return None


def _at_least_zero(number: float, form: str) -> float:
    if not (isfinite(number) and number >= 0):
        raise ValueError(form)
    return number


def _text(given: object, form: str) -> str:
    if not isinstance(given, str):
        raise ValueError(form)
    return given.strip()


def _plain(number: float) -> str:
    """Write a float exactly and without an exponent."""
    return format(Decimal(repr(float(number))), "f").removesuffix(".0")
