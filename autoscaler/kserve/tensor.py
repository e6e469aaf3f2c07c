"""A tensor in the layout of the wire: row-major, little-endian, one after the other.

A *row* is what belongs to one index of the first dimension, the one that batches grow along.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from struct import error

from autoscaler.domain.value import value
from autoscaler.kserve.layout import BYTES, LENGTH, SIZES, Data

STRINGS_MAX = 4096
"""A tensor of more strings is not cut [1]: each has to be looked at."""

_DIMENSION_MAX = 2**31 - 1


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
        size = SIZES.get(self.datatype, LENGTH.size)
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
        if self.datatype not in SIZES:
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
            row = prod(self.shape[1:]) * SIZES[self.datatype]
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
            begin = at + LENGTH.size
            at = begin + LENGTH.unpack_from(data, at)[0]
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
                    at += LENGTH.size + LENGTH.unpack_from(data, at)[0]
                ends.append(at)
        except error:
            at = -1
        if at != len(data):
            raise NotMergeable(f"the strings of {self.name!r} are not as long as they say")
        return ends
