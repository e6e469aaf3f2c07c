"""What a GPU reads at one moment. Not-a-number is what is not known; zero is never put in its place.

**The busy ratio is not occupancy.** NVML calls it "utilization": the share of time in which *any* kernel ran.
One small kernel after another makes it 1.0 while most of the GPU idles, and a language model that makes its
tokens one by one shows 0.95 with one request as with fifty. So it can show that a GPU does nothing, and
hardly anything else; nothing is scaled by it. How full a replica is, its busy slots tell
(`autoscaler_occupancy_ratio`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import nan


class Throttle(StrEnum):
    """Why the clocks are held below what was asked for."""

    POWER_CAP = "power_cap"
    """At the power limit: normal under full load."""
    SOFTWARE_THERMAL = "software_thermal"
    """The driver keeps it from getting too hot."""
    HARDWARE_THERMAL = "hardware_thermal"
    """It is too hot: the clocks are halved, or worse."""
    HARDWARE_SLOWDOWN = "hardware_slowdown"
    POWER_BRAKE = "power_brake"
    """The power supply asks for less."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One process that computes on it."""

    pid: int
    memory: float
    """[bytes]."""
    busy_ratio: float
    """Share of time with one of its kernels running, lately."""


@dataclass(frozen=True, slots=True)
class GpuPart:
    """One part of a GPU that is divided (MIG)."""

    uuid: str
    memory_used: float
    memory_total: float


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU at one moment; each value may be missing on its own."""

    index: int
    name: str = ""
    uuid: str = ""
    busy_ratio: float = nan
    """Share of the last sample period with any kernel running, in [0, 1]."""
    memory_busy_ratio: float = nan
    """Share of it in which memory was read or written, in [0, 1]; not how full the memory is."""
    memory_used: float = nan
    """[bytes], without what the driver reserves."""
    memory_total: float = nan
    power: float = nan
    """[W]."""
    power_limit: float = nan
    temperature: float = nan
    """[°C]."""
    throttled: frozenset[Throttle] | None = None
    """What holds the clocks down; None if it is not known."""
    processes: tuple[GpuProcess, ...] = ()
    parts: tuple[GpuPart, ...] = ()
    lost: str = ""
    """Why nothing can be asked of it at all; empty while something can."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """What the driver said in place of a value, by its name here."""
