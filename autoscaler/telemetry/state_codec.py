"""Controllers and fits as bytes: pickled by the program, read back by one who trusts no file.

A pickle is a program: reading it calls whatever it names. A history file may come from anywhere, so only what
a controller is made of is admitted: classes of the packages that decide, which perform no I/O, and what puts
NumPy's arrays together. Functions are not, nor what those packages have imported from elsewhere.

To pickle takes a millisecond and is done at once, for the controller moves on; to compress takes ten, and is
the work of the writer of the history.
"""

import io
import pickle
import zlib
from collections import deque
from typing import Any

import numpy as np

from autoscaler.errors import UsageError

_PACKAGES = ("autoscaler.scaling", "autoscaler.domain", "autoscaler.queueing", "forecasting")
_SINGLE: dict[tuple[str, str], Any] = {
    ("collections", "deque"): deque,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
}
_NUMPY_MAKERS = {
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
}
_SIZE_MAX = 256 * 2**20
"""No state is larger [bytes]; one that says so would only fill the memory."""


_NOT_READ = (
    *(zlib.error, pickle.UnpicklingError, EOFError, MemoryError),  # damaged
    *(ArithmeticError, AttributeError, ImportError, LookupError, TypeError, ValueError),  # of another version
)


class StateUnreadable(ValueError):
    """A state that this version of the program cannot read: of another version, or damaged."""


def freeze(state: object) -> bytes:
    """Pickle `state` as it is now."""
    return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)


def compress(frozen: bytes) -> bytes:
    """Make what `freeze` gave as small as it is stored."""
    return zlib.compress(frozen)


def thaw(stored: bytes) -> Any:
    """Rebuild, anew at each call, what was frozen and compressed.

    Raises
    ------
    UsageError
        If it names anything that no controller is made of; that has not been called, or even imported.
    StateUnreadable
        If it is damaged, or names a class that this version does not have.
    """
    try:
        unpack = zlib.decompressobj()
        frozen = unpack.decompress(stored, _SIZE_MAX)
        if not unpack.eof:
            raise StateUnreadable("it is cut off, or larger than any")
        return _Admitting(io.BytesIO(frozen)).load()
    except (UsageError, StateUnreadable):
        raise
    except _NOT_READ as error:
        raise StateUnreadable(f"{type(error).__name__}: {error}") from error


class _Admitting(pickle.Unpickler):
    """Knows the classes of a controller, and nothing else."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return what a pickle names, if it is admitted."""
        name = (module_name, global_name)
        if name in _SINGLE:
            return _SINGLE[name]
        if name in _NUMPY_MAKERS:
            return super().find_class(module_name, global_name)
        # A dot in the name would lead through a module to whatever that has imported.
        if not _is_ours(module_name) or "." in global_name:
            raise _refused(*name)
        found = super().find_class(module_name, global_name)
        if not (isinstance(found, type) and _is_ours(found.__module__)):
            raise _refused(*name)
        return found


def _is_ours(module_name: str) -> bool:
    return any(module_name == package or module_name.startswith(f"{package}.") for package in _PACKAGES)


def _refused(module_name: str, global_name: str) -> UsageError:
    return UsageError(
        f"the history holds a state that names {module_name}.{global_name}, and no controller is made of "
        f"that. It was not executed. Somebody has written into the file: take a copy that you trust."
    )
