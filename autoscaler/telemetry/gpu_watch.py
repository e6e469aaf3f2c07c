"""Reads the GPUs now and then, on a thread of its own.

The driver may block for seconds when a GPU is sick, and for ever when it hangs. So no event loop waits for
it and no end of the program does: the thread is a daemon, one reading is made at a time, and one that does
not come makes what was read last too old to be told.
"""

import threading

import structlog

from autoscaler.nvml import Fault, FaultKind
from autoscaler.ports import Clock
from autoscaler.telemetry.gpu_nvml import GpuReader
from autoscaler.telemetry.gpu_reading import GpuReading

log = structlog.get_logger(__name__)

INTERVAL = 10.0
"""Between two readings [s]."""
TOO_OLD = 3 * INTERVAL
"""A reading is told for so long [s]."""
_WITHOUT_DRIVER = 300.0
"""Between two tries where there is no driver, which may be loaded later [s]."""


class GpuWatch:
    """The latest reading of every GPU, from `start` to `stop`.

    Parameters
    ----------
    clock : Clock
        Tells how old a reading is.
    reader : GpuReader or None
        Who reads; None is the driver of this machine.
    """

    def __init__(self, clock: Clock, reader: GpuReader | None = None) -> None:
        self._clock = clock
        self._reader = reader or GpuReader()
        self._stopped = threading.Event()
        self._latest: tuple[float, tuple[GpuReading, ...]] = (0.0, ())
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="gpu readings", daemon=True)

    def start(self) -> None:
        """Begin to read; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; does not wait for a reading that is on its way."""
        self._stopped.set()

    @property
    def readings(self) -> tuple[GpuReading, ...]:
        """What the GPUs read last; empty if there are none, or if the driver has not answered for long."""
        read_at, readings = self._latest
        return readings if self._clock.now() - read_at <= TOO_OLD else ()

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            pause = self._read()
        self._reader.close()

    def _read(self) -> float:
        """Read once; return the pause until the next reading [s]. Whatever happens, the thread lives on."""
        try:
            found = self._reader.read()
        except Exception as error:  # a driver or a binding that breaks its word
            log.warning("GPUs cannot be read", why=repr(error))
            return _WITHOUT_DRIVER
        if isinstance(found, Fault):
            if found.kind is not FaultKind.NO_DRIVER:  # a machine without GPUs has nothing to complain of
                self._tell(found.text)
            return _WITHOUT_DRIVER
        self._latest = (self._clock.now(), found)
        self._tell("; ".join(f"GPU {each.index}: {each.lost}" for each in found if each.lost))
        return INTERVAL

    def _tell(self, fault: str) -> None:
        """Log what is wrong once, and once that it is over."""
        if fault != self._told:
            if fault:
                log.warning("GPU readings fail", why=fault)
            else:
                log.info("GPU readings are complete again")
            self._told = fault
