"""A tensor in the layout of the wire: row-major, little-endian, one after the other.

Strings (BYTES) are each preceded by their length in four bytes. A *row* is what belongs to one index of the
first dimension, the one that batches grow along.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from struct import Struct, error

import numpy as np

from autoscaler.domain.value import value

Data = bytes | memoryview

NUMPY = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("<u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("<i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
"""Datatypes of the protocol that NumPy has too."""

_SIZES = {name: kind.itemsize for name, kind in NUMPY.items()} | {"BF16": 2}

BYTES = "BYTES"

STRINGS_MAX = 4096
"""A tensor of more strings is not cut [1]: each has to be looked at."""

_DIMENSION_MAX = 2**31 - 1

_LENGTH = Struct("<I")


class NotMergeable(Exception):
    """The request, or the answer, is none that can be merged or split; the text says why."""


class IgnoresRows(NotMergeable):
    """The model does not answer row by row, so its requests can never be merged."""


class Unsound(NotMergeable):
    """The request is none of the protocol, or its data is none of its datatype: a mistake of its client."""


class Malformed(Unsound):
    """The request contradicts itself, so that no server can serve it.

    It is better refused than passed on: of a shape that is larger than its data some servers reserve memory
    for the shape before they look at the data.
    """


@value
class Tensor:
    """One tensor of a request or an answer."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Data

    @property
    def elements(self) -> int:
        """How many values it holds [1]."""
        return prod(self.shape)

    def check(self) -> None:
        """Raise NotMergeable unless datatype, shape and data fit together and there is something in it."""
        size = _SIZES.get(self.datatype, _LENGTH.size)
        if min(self.shape, default=0) >= 0 and len(self.data) < self.elements * size:
            raise Malformed(
                f"the shape of the input {self.name!r}, {list(self.shape)}, says {self.elements} values, and "
                f"its data is shorter; give as many as the shape says"
            )
        if not self.shape or not all(0 < size <= _DIMENSION_MAX for size in self.shape):
            raise NotMergeable(f"the shape of {self.name!r} has no rows, or none of a size that can be")
        if self.datatype == BYTES:
            self._row_ends()
            return
        if self.datatype not in _SIZES:
            raise NotMergeable(f"the datatype of {self.name!r} is unknown")
        if len(self.data) != self.elements * size:
            raise NotMergeable(f"the data of {self.name!r} is not as long as its shape says")

    def cut(self, rows: Sequence[int]) -> "list[Tensor]":
        """Return it in pieces of so many rows each, which must be all; nothing is copied."""
        data = memoryview(self.data)
        bounds = [0, *accumulate(rows)]
        if self.datatype == BYTES:
            ends = [0, *self._row_ends()]
            places = [ends[bound] for bound in bounds]
        else:
            row = prod(self.shape[1:]) * _SIZES[self.datatype]
            places = [bound * row for bound in bounds]
        rest = self.shape[1:]
        return [
            Tensor(self.name, self.datatype, (count, *rest), data[places[i] : places[i + 1]])
            for i, count in enumerate(rows)
        ]

    def strings(self) -> list[bytes]:
        """Return the values of a tensor of strings, in order."""
        data, found, at = memoryview(self.data), [], 0
        for _ in range(self.elements):
            begin = at + _LENGTH.size
            at = begin + _LENGTH.unpack_from(data, at)[0]
            found.append(bytes(data[begin:at]))
        return found

    def _row_ends(self) -> list[int]:
        """Where each row of strings ends [bytes]."""
        if self.elements > STRINGS_MAX:
            raise NotMergeable(f"{self.name!r} holds more than {STRINGS_MAX} strings")
        data, ends, at = self.data, [], 0
        each = prod(self.shape[1:])
        try:
            for _ in range(self.shape[0]):
                for _ in range(each):
                    at += _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
                ends.append(at)
        except error:
            at = -1
        if at != len(data):
            raise NotMergeable(f"the strings of {self.name!r} are not as long as they say")
        return ends


def strings_of(values: Sequence[bytes]) -> bytes:
    """Return strings in the layout of the wire."""
    return b"".join([part for value in values for part in (_LENGTH.pack(len(value)), value)])
