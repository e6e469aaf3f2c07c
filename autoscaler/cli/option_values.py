"""Values of options: read, kept within bounds, and refused in a sentence that names value and remedy.

Typer puts the name of the option before the sentence, and ends with exit code 2. Each function here makes a
reader for the bounds of one option. `nan` lies in no bounds.
"""

from collections.abc import Callable

import typer

from autoscaler.units import (
    format_duration,
    format_fraction,
    format_rate,
    parse_duration,
    parse_fraction,
    parse_rate,
)

Reader = Callable[[object], float]
"""Reads what was typed, or a default."""

DAY = 86_400.0  # [s]
SEED_MAX = 2**64 - 1


def a_duration(least: float, most: float) -> Reader:
    """Return a reader of lengths of time between `least` and `most` [s]."""
    return _bounded(parse_duration, format_duration, least, most)


def a_rate(least: float, most: float) -> Reader:
    """Return a reader of rates between `least` and `most` [1/s]."""
    return _bounded(parse_rate, format_rate, least, most)


def a_fraction(least: float, most: float) -> Reader:
    """Return a reader of shares between `least` and `most`, such as 0.99 or 99%."""
    return _bounded(parse_fraction, format_fraction, least, most)


def a_number(least: float, most: float) -> Reader:
    """Return a reader of plain numbers between `least` and `most`."""
    return _bounded(_number, lambda number: f"{number:,.10g}", least, most)


def a_whole_number(least: int, most: int) -> Callable[[object], int]:
    """Return a reader of whole numbers between `least` and `most`."""

    def read(given: object) -> int:
        try:
            value = int(str(given))
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise typer.BadParameter(f"{given!r}: write a whole number between {least} and {most}.")
        return value

    return read


def _bounded(
    parse: Callable[[object], float], written: Callable[[float], str], least: float, most: float
) -> Reader:
    def read(given: object) -> float:
        try:
            value = parse(given)
        except (ValueError, OverflowError) as error:
            raise typer.BadParameter(f"{given!r}: write {error}.") from error
        if not least <= value <= most:
            raise typer.BadParameter(f"{given!r}: write between {written(least)} and {written(most)}.")
        return value

    return read


def _number(given: object) -> float:
    try:
        return float(str(given))
    except ValueError:
        raise ValueError("a number such as 1 or 0.5") from None
