"""GPU readings as metrics; what is not known has no sample.

The label `gpu` is the number in the driver, and `part` the number of a part of a divided GPU: both bounded by
the machine. Processes come and go, so they are counted, not named.
"""

import math
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.telemetry.gpu_reading import GpuReading, Throttle

_Read = Callable[[GpuReading], float]

_NOT_OCCUPANCY = (
    "Share of time with any kernel running (what NVML calls utilization). NOT occupancy: small kernels one "
    "after another read 1 on a GPU with room to spare; how full replicas are is autoscaler_occupancy_ratio."
)
_PLAIN: tuple[tuple[str, str, _Read], ...] = (
    ("busy_ratio", _NOT_OCCUPANCY, lambda gpu: gpu.busy_ratio),
    (
        "memory_busy_ratio",
        "Share of time in which memory was read or written; not how full it is.",
        lambda gpu: gpu.memory_busy_ratio,
    ),
    ("memory_used_bytes", "Memory in use, without what the driver reserves.", lambda gpu: gpu.memory_used),
    ("memory_size_bytes", "Memory of the GPU.", lambda gpu: gpu.memory_total),
    ("power_watts", "Power drawn now.", lambda gpu: gpu.power),
    ("power_limit_watts", "Power at which the clocks are held down.", lambda gpu: gpu.power_limit),
    ("temperature_celsius", "Temperature of the GPU.", lambda gpu: gpu.temperature),
    (
        "processes",
        "Processes computing on it.",
        lambda gpu: math.nan if gpu.lost or "processes" in gpu.faults else len(gpu.processes),
    ),
    ("up", "1 while the driver can ask the GPU, 0 once it is lost.", lambda gpu: 0.0 if gpu.lost else 1.0),
)


def gpu_metrics(readings: Iterable[GpuReading]) -> Iterator[Metric]:
    """Yield every metric of the GPUs; none at all where there is no GPU."""
    gpus = list(readings)
    if not gpus:
        return
    for name, text, read in _PLAIN:
        family = GaugeMetricFamily(f"autoscaler_gpu_{name}", text, labels=["gpu"])
        for gpu in gpus:
            if not math.isnan(value := read(gpu)):
                family.add_metric([str(gpu.index)], value)
        yield family
    yield _throttled(gpus)
    yield from _parts(gpus)
    info = GaugeMetricFamily(
        "autoscaler_gpu_info", "1 for each GPU, with what it is.", labels=["gpu", "uuid", "name"]
    )
    for gpu in gpus:
        if not gpu.lost:
            info.add_metric([str(gpu.index), gpu.uuid, gpu.name], 1.0)
    yield info


def _throttled(gpus: list[GpuReading]) -> Metric:
    family = GaugeMetricFamily(
        "autoscaler_gpu_throttled", "1 while this holds the clocks down.", labels=["gpu", "reason"]
    )
    for gpu in gpus:
        for reason in Throttle if gpu.throttled is not None else ():
            family.add_metric([str(gpu.index), reason.value], float(reason in (gpu.throttled or ())))
    return family


def _parts(gpus: list[GpuReading]) -> Iterator[Metric]:
    labels = ["gpu", "part"]
    used = GaugeMetricFamily(
        "autoscaler_gpu_part_memory_used_bytes", "Memory in use in a part of a divided GPU.", labels=labels
    )
    size = GaugeMetricFamily(
        "autoscaler_gpu_part_memory_size_bytes", "Memory of a part of a divided GPU.", labels=labels
    )
    for gpu in gpus:
        for place, part in enumerate(gpu.parts):
            for family, value in ((used, part.memory_used), (size, part.memory_total)):
                if not math.isnan(value):
                    family.add_metric([str(gpu.index), str(place)], value)
    if any(gpu.parts for gpu in gpus):
        yield used
        yield size
