"""Frozen dataclasses to JSON and back, without loss.

JSON knows neither NaN nor infinity. Inside the program NaN marks what is not known, so it becomes
`null`; an infinite number becomes the text "inf" or "-inf". Everything else is written so that the
very same float is read back, which lets a stored decision be re-executed bit for bit.

Reading follows the type hints: a `null` where the hint says `float` is NaN, where it says
`Observation | None` it is None. Unknown fields are ignored and absent ones take their default, so
that a file written by a neighbouring version stays readable.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Turn a dataclass (or a container of them) into dicts, lists, texts and finite numbers."""
    return _without_special_floats(msgspec.to_builtins(value, enc_hook=_numpy_scalar))


def from_plain(plain: Any, kind: type[T]) -> T:
    """Rebuild a `kind` from what `to_plain` made of it.

    Raises
    ------
    ValueError
        If `plain` does not fit; the text names the field.
    """
    try:
        return msgspec.convert(_with_special_floats(plain, kind), kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a {getattr(kind, '__name__', kind)}: {error}") from error


def encode(value: object) -> bytes:
    """Write `value` as JSON."""
    return msgspec.json.encode(to_plain(value))


def decode(raw: bytes | str, kind: type[T]) -> T:
    """Read a `kind` from JSON. Raises ValueError if it is none."""
    try:
        plain = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    return from_plain(plain, kind)


def _numpy_scalar(value: object) -> object:
    numpy = sys.modules.get("numpy")  # a program that has not imported it has no such number
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    raise TypeError(f"cannot be written as JSON: {value!r}")


def _without_special_floats(plain: Any) -> Any:
    if isinstance(plain, float) and not math.isfinite(plain):
        return None if math.isnan(plain) else str(plain)
    if isinstance(plain, dict):
        return {key: _without_special_floats(value) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_without_special_floats(value) for value in plain]
    return plain


def _with_special_floats(plain: Any, kind: Any) -> Any:
    if kind is float:
        return math.nan if plain is None else float(plain) if plain in ("inf", "-inf") else plain
    if plain is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(plain, Mapping):
        hints = _hints(kind)
        return {
            name: _with_special_floats(value, hints[name]) for name, value in plain.items() if name in hints
        }
    arguments = [argument for argument in get_args(kind) if argument not in (NoneType, Ellipsis)]
    if isinstance(plain, list) and get_origin(kind) in (list, tuple):
        return [_with_special_floats(value, arguments[0]) for value in plain]
    if isinstance(plain, Mapping) and get_origin(kind) is dict:
        return {key: _with_special_floats(value, arguments[1]) for key, value in plain.items()}
    return _with_special_floats(plain, arguments[0]) if len(arguments) == 1 else plain


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
