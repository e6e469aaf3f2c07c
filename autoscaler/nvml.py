"""NVIDIA's management library (NVML), of which any question may go unanswered.

A card may lack a sensor, a container may lack a permission, a GPU may fall off the bus while the others work
on. So each question is answered with its value or with a `Fault`, one by one, and none raises. The binding is
`pynvml` of nvidia-ml-py; the library itself comes with the driver, and where there is no driver `open_nvml`
says so.

Each question is a call into the driver and may take milliseconds, or, with a sick GPU, seconds: never ask
from the event loop.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ParamSpec, TypeVar

import pynvml

P = ParamSpec("P")
T = TypeVar("T")


class FaultKind(StrEnum):
    """Why a question has no answer."""

    NO_DRIVER = "no_driver"
    """No library, or no driver behind it: this machine, or this container, has no NVIDIA GPU to ask."""
    NOT_SUPPORTED = "not_supported"
    """This card, or this driver, does not know; it will not know later either."""
    NO_PERMISSION = "no_permission"
    GPU_LOST = "gpu_lost"
    """It fell off the bus, or needs a reset; nothing can be asked of it."""
    NOT_FOUND = "not_found"
    """There is no such thing now: no sample lately, no such part of a GPU."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Fault:
    """A question without an answer."""

    kind: FaultKind
    text: str
    """What the driver says."""

    def __str__(self) -> str:
        return self.text


_KINDS = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: FaultKind.NO_DRIVER,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: FaultKind.NO_DRIVER,
    pynvml.NVML_ERROR_NOT_SUPPORTED: FaultKind.NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: FaultKind.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: FaultKind.NO_PERMISSION,
    pynvml.NVML_ERROR_GPU_IS_LOST: FaultKind.GPU_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED: FaultKind.GPU_LOST,
    pynvml.NVML_ERROR_NOT_FOUND: FaultKind.NOT_FOUND,
}
_REMEDIES = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        "libnvidia-ml.so.1 is not here: no NVIDIA driver is installed, or this container was started without"
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is installed but not loaded",
    pynvml.NVML_ERROR_GPU_IS_LOST: "GPU is lost: it fell off the bus; reset it or restart the machine",
    pynvml.NVML_ERROR_RESET_REQUIRED: "the GPU must be reset before it works again",
}


def ask(question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Fault:
    """Put a question of `pynvml` to the driver; whatever goes wrong is the answer, nothing is raised."""
    try:
        return question(*args, **kwargs)
    except pynvml.NVMLError as error:
        return _fault(error)
    except (OSError, ValueError, AttributeError, UnicodeDecodeError) as error:
        # A library that is older or newer than the binding.
        return Fault(FaultKind.OTHER, f"{type(error).__name__}: {error}")


def answered(answer: T | Fault, unknown: T) -> T:
    """Return the answer, or `unknown` where there is none."""
    return unknown if isinstance(answer, Fault) else answer


@contextmanager
def open_nvml() -> Iterator[Fault | None]:
    """Open the library for a block; yields None, or the fault for which nothing can be asked in it."""
    fault = ask(pynvml.nvmlInit)
    try:
        yield fault
    finally:
        if fault is None:
            ask(pynvml.nvmlShutdown)


def gpu_handles() -> list[Any | Fault] | Fault:
    """Return a handle for each GPU in the driver's order, with the fault in place of one that has none."""
    count = ask(pynvml.nvmlDeviceGetCount)
    if isinstance(count, Fault):
        return count
    return [ask(pynvml.nvmlDeviceGetHandleByIndex, index) for index in range(count)]


def _fault(error: pynvml.NVMLError) -> Fault:
    kind = _KINDS.get(error.value, FaultKind.OTHER)
    return Fault(kind, _REMEDIES.get(error.value) or str(error))
