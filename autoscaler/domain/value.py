"""Values that nobody changes, for where many are made each second."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def value(cls: type[_T]) -> type[_T]:
    """Make a dataclass whose fields are set once: the type checker holds everybody to it.

    Not Python itself, which would take five times as long to make one of ten fields, and each request makes
    several. Equal values have equal hashes, as of every frozen dataclass.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
