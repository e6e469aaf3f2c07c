"""Values that are numbers: times, sizes, shares, counts, rates."""

import re
from dataclasses import dataclass
from math import inf
from typing import Any

from autoscaler import units
from autoscaler.settings.values.kind import Kind, not_allowed, parsed


@dataclass(frozen=True, slots=True)
class Duration(Kind):
    """A length of time [s]."""

    least: float = 0.0
    most: float = inf

    def read(self, given: Any) -> float:
        seconds = parsed(units.parse_duration, given, units.DURATION_FORM)
        if not self.least <= seconds <= self.most:
            raise not_allowed(_range(self.least, self.most, units.format_duration))
        return seconds


@dataclass(frozen=True, slots=True)
class Size(Kind):
    """Memory [bytes]."""

    least: int = 0

    def read(self, given: Any) -> int:
        size = parsed(units.parse_size, given, units.SIZE_FORM)
        if size < self.least:
            raise not_allowed(_range(self.least, inf, units.format_size))
        return size


@dataclass(frozen=True, slots=True)
class Fraction(Kind):
    """A share strictly between 0 and 1 [1]."""

    def read(self, given: Any) -> float:
        if isinstance(given, int | float) and not isinstance(given, bool) and 1 < given < 100:
            raise not_allowed(units.FRACTION_FORM, f"did you mean {given:g}%?")
        fraction = parsed(units.parse_fraction, given, units.FRACTION_FORM)
        if not 0 < fraction < 1:
            raise not_allowed("above 0 and below 1 (0 % and 100 % cannot be kept)")
        return fraction


@dataclass(frozen=True, slots=True)
class Share(Kind):
    """A share from 0 to 1, both included, or without 0 [1]."""

    zero_allowed: bool = True

    def read(self, given: Any) -> float:
        share = parsed(units.parse_fraction, given, units.FRACTION_FORM)
        if share == 0 and not self.zero_allowed:
            raise not_allowed("above 0, up to 1")
        return share


@dataclass(frozen=True, slots=True)
class Count(Kind):
    """A whole number [1]."""

    least: int = 0
    most: float = inf

    def read(self, given: Any) -> int:
        allowed = f"a whole number {_range(self.least, self.most, '{:g}'.format)}"
        if isinstance(given, str) and re.fullmatch(r"[\d_]{1,17}", given) and given.strip("_"):
            number = str(int(given.replace("_", "")))
            is_quoted = given == number
            raise not_allowed(allowed, "write it without quotes" if is_quoted else f"did you mean {number}?")
        if not isinstance(given, int) or isinstance(given, bool) or not self.least <= given <= self.most:
            raise not_allowed(allowed)
        return given


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A number above a bound [1]."""

    above: float

    def read(self, given: Any) -> float:
        if not isinstance(given, int | float) or isinstance(given, bool) or not self.above < given < inf:
            raise not_allowed(f"a number above {self.above:g}")
        return float(given)


@dataclass(frozen=True, slots=True)
class Rate(Kind):
    """Events in a time [1/s]."""

    zero_allowed: bool = False

    def read(self, given: Any) -> float:
        rate: float = parsed(units.parse_rate, given, units.RATE_FORM)
        if rate <= 0 and not self.zero_allowed:
            raise not_allowed("a rate above 0", "write none for no limit")
        return rate


def _range(least: float, most: float, show: Any) -> str:
    return f"{show(least)} or more" if most == inf else f"{show(least)} to {show(most)}"
