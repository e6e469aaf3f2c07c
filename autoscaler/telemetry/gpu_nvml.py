"""Readings of the GPUs of this machine, from the driver (NVML). A call into it may block: not for the loop.

The values of one GPU fail one by one: a card without a power sensor, a divided card (MIG) without a busy
ratio, a driver without a function. A GPU that is lost is asked nothing more. The library is opened at the
first reading and again after it failed, so that a driver which is loaded later, or again, is found.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from math import nan
from typing import Any

import pynvml

from autoscaler.nvml import Fault, FaultKind, answered, ask, gpu_handles, open_nvml
from autoscaler.telemetry.gpu_reading import GpuPart, GpuProcess, GpuReading, Throttle

_THROTTLES = {
    pynvml.nvmlClocksThrottleReasonSwPowerCap: Throttle.POWER_CAP,
    pynvml.nvmlClocksThrottleReasonSwThermalSlowdown: Throttle.SOFTWARE_THERMAL,
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: Throttle.HARDWARE_THERMAL,
    pynvml.nvmlClocksThrottleReasonHwSlowdown: Throttle.HARDWARE_SLOWDOWN,
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: Throttle.POWER_BRAKE,
}
_PERCENT, _MILLI = 100, 1000
"""Of them make one [1]."""


class GpuReader:
    """Reads all GPUs; keeps the library open between readings. For one thread at a time."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._is_open = False
        self._seen: dict[int, int] = {}
        """Time of the last sample of processes that was read, by GPU, in the driver's measure."""

    def read(self) -> tuple[GpuReading, ...] | Fault:
        """Return a reading of each GPU in the driver's order, or why there can be none; raises nothing."""
        if not self._is_open:
            fault = self._open.enter_context(open_nvml())
            if fault is not None:
                self.close()
                return fault
            self._is_open = True
        handles = gpu_handles()
        if isinstance(handles, Fault):
            self.close()
            return handles
        return tuple(self._read_one(index, handle) for index, handle in enumerate(handles))

    def close(self) -> None:
        """Let go of the library; the next reading opens it again."""
        self._open.close()
        self._is_open = False

    def _read_one(self, index: int, handle: Any) -> GpuReading:
        if isinstance(handle, Fault):
            return GpuReading(index, lost=handle.text)
        uuid = ask(pynvml.nvmlDeviceGetUUID, handle)
        if isinstance(uuid, Fault) and uuid.kind is FaultKind.GPU_LOST:
            return GpuReading(index, lost=uuid.text)
        asking = _Asking(handle)
        utilization = asking.of("busy_ratio", pynvml.nvmlDeviceGetUtilizationRates)
        memory = asking.noting("memory_used", _memory(handle))
        return GpuReading(
            index=index,
            name=answered(ask(pynvml.nvmlDeviceGetName, handle), ""),
            uuid=answered(uuid, ""),
            busy_ratio=_scaled(utilization and utilization.gpu, _PERCENT),
            memory_busy_ratio=_scaled(utilization and utilization.memory, _PERCENT),
            memory_used=_scaled(memory and memory.used),
            memory_total=_scaled(memory and memory.total),
            power=_scaled(asking.of("power", pynvml.nvmlDeviceGetPowerUsage), _MILLI),
            power_limit=_scaled(asking.of("power_limit", pynvml.nvmlDeviceGetEnforcedPowerLimit), _MILLI),
            temperature=_scaled(
                asking.of("temperature", pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU)
            ),
            throttled=_throttled(asking),
            processes=self._processes(index, asking),
            parts=tuple(_parts(handle)),
            faults=asking.faults,
        )

    def _processes(self, index: int, asking: "_Asking") -> tuple[GpuProcess, ...]:
        running = asking.of("processes", pynvml.nvmlDeviceGetComputeRunningProcesses)
        seen = self._seen.get(index, 0)
        samples = ask(pynvml.nvmlDeviceGetProcessUtilization, asking.handle, seen)
        if isinstance(samples, Fault):
            if samples.kind is not FaultKind.NOT_FOUND:  # that one says only that nothing is new
                asking.noting("process_busy_ratio", samples)
            samples = []
        busy = _mean_by_process(samples)
        self._seen[index] = max([seen, *(sample.timeStamp for sample in samples)])
        return tuple(
            GpuProcess(each.pid, _scaled(each.usedGpuMemory), busy.get(each.pid, nan))
            for each in running or ()
        )


class _Asking:
    """Questions about one GPU, and what was said in place of answers."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.faults: dict[str, str] = {}

    def of(self, field: str, question: Callable[..., Any], *more: Any) -> Any:
        """Put a question; return its answer, or None and note why."""
        return self.noting(field, ask(question, self.handle, *more))

    def noting(self, field: str, answer: Any) -> Any:
        """Return an answer, or None where there is none, which is noted."""
        if not isinstance(answer, Fault):
            return answer
        self.faults[field] = answer.text
        return None


def _scaled(value: float | None, parts: int = 1) -> float:
    return nan if value is None else value / parts


def _memory(handle: Any) -> Any:
    """Ask for the memory; an old driver only knows the form that counts what is reserved as used."""
    memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle, version=pynvml.nvmlMemory_v2)
    if isinstance(memory, Fault) and memory.kind is not FaultKind.GPU_LOST:
        return ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    return memory


def _throttled(asking: _Asking) -> frozenset[Throttle] | None:
    """Ask what holds the clocks down, by the question's new name or, of an older driver, by its old one."""
    reasons = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons, asking.handle)
    if isinstance(reasons, Fault):
        reasons = asking.of("throttled", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    if reasons is None:
        return None
    return frozenset(throttle for bit, throttle in _THROTTLES.items() if reasons & bit)


def _parts(handle: Any) -> Iterator[GpuPart]:
    """Yield the parts of a divided GPU; one that is not divided, or cannot be, has none."""
    for place in range(answered(ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle), 0)):
        part = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
        if isinstance(part, Fault):
            continue
        memory, uuid = _memory(part), ask(pynvml.nvmlDeviceGetUUID, part)
        known = not isinstance(memory, Fault)
        yield GpuPart(
            answered(uuid, f"part {place}"), memory.used if known else nan, memory.total if known else nan
        )


def _mean_by_process(samples: Sequence[Any]) -> dict[int, float]:
    """Return the mean share of time of each process over its samples."""
    shares: dict[int, list[float]] = defaultdict(list)
    for sample in samples:
        shares[sample.pid].append(sample.smUtil / _PERCENT)
    return {pid: sum(each) / len(each) for pid, each in shares.items()}
