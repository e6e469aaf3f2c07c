"""Values in the layout of the wire, and back: row-major, little-endian, one after the other.

The standard library does it as fast as NumPy does, up to tensors as large as are merged, and a sidecar has no
room for NumPy. Strings (BYTES) are each preceded by their length in four bytes.
"""

from collections.abc import Sequence
from math import copysign, inf, isfinite
from struct import Struct, calcsize, error, pack, unpack
from typing import Any

Data = bytes | memoryview

BYTES = "BYTES"

FORMATS = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP16": "e",
    "FP32": "f",
    "FP64": "d",
}
"""What `struct` calls the datatypes of the protocol whose values Python has too."""

SIZES = {datatype: calcsize(f"<{code}") for datatype, code in FORMATS.items()} | {"BF16": 2}
"""How long a value of each datatype is [bytes]; strings differ."""

LENGTH = Struct("<I")
"""What precedes a string."""

_SINGLE = Struct("<f")

_EXPONENT_FULL = (0x7F, 0xFF)
"""The highest byte of infinities and of what is no number, and of nothing that is small, in single and double
precision."""


def to_wire(datatype: str, values: Sequence[Any]) -> bytes:
    """Return numbers, or truth values, in the layout of the wire.

    What is too large for single precision is infinite, as for servers. Raises OverflowError if any other
    value does not fit.
    """
    try:
        return pack(f"<{len(values)}{FORMATS[datatype]}", *values)
    except (error, OverflowError) as bad:
        if datatype != "FP32":
            raise OverflowError(f"a value does not fit {datatype}") from bad
        return b"".join(map(_single, values))


def from_wire(datatype: str, data: Data) -> tuple[Any, ...]:
    """Return the numbers, or truth values, that `data` is."""
    return unpack(f"<{len(data) // SIZES[datatype]}{FORMATS[datatype]}", data)


def strings_to_wire(values: Sequence[bytes]) -> bytes:
    """Return strings in the layout of the wire."""
    return b"".join([part for value in values for part in (LENGTH.pack(len(value)), value)])


def all_finite(datatype: str, data: Data) -> bool:
    """Whether all numbers, of single or double precision, are."""
    size = SIZES[datatype]
    highest = bytes(data)[size - 1 :: size]
    if not any(byte in highest for byte in _EXPONENT_FULL):
        return True
    return all(map(isfinite, from_wire(datatype, data)))


def _single(value: float) -> bytes:
    try:
        return _SINGLE.pack(value)
    except OverflowError:
        return _SINGLE.pack(copysign(inf, value))
