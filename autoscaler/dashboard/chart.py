"""A small chart of characters: a filled area, a dotted line over it, and a shaded fan.

The area is drawn in eighths of a cell, the line in braille dots (two columns and four rows a cell),
so both are finer than the grid they stand on. Shapes alone tell them apart; colour only helps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BRAILLE = 0x2800
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # left and right column, from the bottom up
_FAN, _FAN_STYLE = "░", "#6c6c6c"
_NICE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_UNKNOWN = math.nan


@dataclass(frozen=True, slots=True)
class Line:
    """A dotted line: `values` has two entries a column."""

    values: Sequence[float]
    style: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn, a column at a time; not-a-number leaves a column out.

    Attributes
    ----------
    area : sequence of float, length n_columns
        Filled from 0.
    area_style : str
        Its colour.
    lines : sequence of Line
        Over the area; where two meet the first is seen.
    top : float
        The value at the upper edge, > 0.
    fan_low, fan_high : sequence of float, length n_columns or 0
        Shaded between, behind all else.
    """

    area: Sequence[float]
    area_style: str
    lines: Sequence[Line]
    top: float
    fan_low: Sequence[float] = ()
    fan_high: Sequence[float] = ()

    def rows(self, height: int) -> list[Text]:
        """Draw it `height` rows high, the upper one first."""
        rows = []
        for row in reversed(range(height)):
            text = Text(no_wrap=True, end="")
            for column in range(len(self.area)):
                text.append(*self._cell(column, row, height))
            rows.append(text)
        return rows

    def _cell(self, column: int, row: int, height: int) -> tuple[str, str]:
        """Return the character and the style of one cell; rows count from the bottom."""
        filled = self._height_of(self.area[column], height) - row
        for line in self.lines:
            if dots := self._dots(line.values[2 * column : 2 * column + 2], row, height):
                return chr(_BRAILLE + dots), line.style + (f" on {self.area_style}" if filled >= 0.5 else "")
        if filled > 0:
            return _EIGHTHS[min(8, max(1, round(filled * 8)))], self.area_style
        if self.fan_low and self._in_fan(column, row, height):
            return _FAN, _FAN_STYLE
        return " ", ""

    def _dots(self, halves: Sequence[float], row: int, height: int) -> int:
        """Return the braille dots of a line in one cell; 0 if it passes elsewhere."""
        dots = 0
        for half, value in enumerate(halves):
            above = min(self._height_of(value, height), height - 0.01) - row
            if 0 <= above < 1:
                dots |= _DOTS[half][int(above * 4)]
        return dots

    def _in_fan(self, column: int, row: int, height: int) -> bool:
        low = self._height_of(self.fan_low[column], height)
        high = self._height_of(self.fan_high[column], height)
        return low < row + 1 and row < high  # whatever it touches, so that a thin one is whole

    def _height_of(self, value: float, height: int) -> float:
        """Return how many rows high a value stands; an unknown one stands below the ground."""
        return -2.0 if math.isnan(value) else value / self.top * height


def nice_top(*series: Sequence[float], at_least: float = 1.0) -> float:
    """Return a round number at or above everything known in `series`, for the upper edge."""
    highest = max((value for values in series for value in values if math.isfinite(value)), default=0.0)
    highest = max(highest, at_least)
    magnitude = 10.0 ** math.floor(math.log10(highest))
    return next(nice * magnitude for nice in _NICE if nice * magnitude >= highest * (1 - 1e-9))


def sampled(points: Sequence[tuple[float, float]], edges: Sequence[float]) -> list[float]:
    """Put (time, value) points, in order of time, into the columns between `edges`.

    Returns
    -------
    list of float, length len(edges) - 1
        The mean of the points in each column; in one without a point the value last known, as long as
        another point follows; else NaN.
    """
    columns: list[float] = []
    index, held = 0, _UNKNOWN
    while index < len(points) and points[index][0] < edges[0]:
        held = points[index][1]
        index += 1
    for end in edges[1:]:
        found: list[float] = []
        while index < len(points) and points[index][0] < end:
            held = points[index][1]
            found.append(held)
            index += 1
        known = [value for value in found if not math.isnan(value)]
        if found:
            columns.append(sum(known) / len(known) if known else _UNKNOWN)
        else:
            columns.append(held if index < len(points) else _UNKNOWN)
    return columns
