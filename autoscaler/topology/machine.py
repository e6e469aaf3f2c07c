"""The parts of a machine and the paths between them, as values.

Two devices are as far apart as the lowest thing above both of them: a PCIe switch, the host bridge of a
socket, the interconnect of the sockets. NVLink joins GPUs beside all that. The words for it are those of
`nvidia-smi topo -m`, which people know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class PciPath(IntEnum):
    """What two devices have above them in common; a greater one is farther. Numbers as in NVML."""

    INTERNAL = 0
    """They are on one board."""
    SWITCH = 10
    """One PCIe switch joins them."""
    SWITCHES = 20
    """Several PCIe switches, but nothing of the processor."""
    HOST_BRIDGE = 30
    """The PCIe host bridge of the processor."""
    NODE = 40
    """Several host bridges of one memory node."""
    SYSTEM = 50
    """The interconnect between memory nodes: the slow way."""

    @property
    def word(self) -> str:
        """As `nvidia-smi topo -m` names it."""
        return _WORDS[self]


_WORDS = {
    PciPath.INTERNAL: "INT",
    PciPath.SWITCH: "PIX",
    PciPath.SWITCHES: "PXB",
    PciPath.HOST_BRIDGE: "PHB",
    PciPath.NODE: "NODE",
    PciPath.SYSTEM: "SYS",
}


@dataclass(frozen=True, slots=True)
class Link:
    """How two GPUs, or a GPU and a network card, are joined."""

    path: PciPath | None
    """None if nobody can tell."""
    nvlinks: int = 0
    """NVLinks between them, directly or through NVSwitch [1]."""

    @property
    def word(self) -> str:
        """As `nvidia-smi topo -m` shows it: NV4, PIX, SYS; `?` if it is not known."""
        if self.nvlinks:
            return f"NV{self.nvlinks}"
        return "?" if self.path is None else self.path.word

    @property
    def cost(self) -> tuple[int, int]:
        """To compare: lower is closer. NVLink is closer than any path; what is not known is farthest."""
        if self.nvlinks:
            return -1, -self.nvlinks
        return (PciPath.SYSTEM + 1 if self.path is None else int(self.path)), 0


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """Memory and the cores that are next to it (NUMA)."""

    number: int
    cpus: frozenset[int]
    memory: int
    """[bytes]; 0 if it is not known."""
    distances: tuple[int, ...] = ()
    """To each node, in the firmware's measure: 10 is its own."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, by its number in the driver."""

    index: int
    name: str = ""
    uuid: str = ""
    bus_id: str = ""
    """Its address as in /sys/bus/pci: `0000:3b:00.0`."""
    node: int | None = None
    """The memory node next to it; None if it is not known."""
    cpus: frozenset[int] = frozenset()
    """The cores next to it; empty if they are not known."""
    fault: str = ""
    """Why it cannot be asked; empty if it can."""


@dataclass(frozen=True, slots=True)
class Nic:
    """One network card that is a device of its own."""

    name: str
    """Of its network interface, its RDMA device, or both: `eth0`, `mlx5_0/ib0`."""
    bus_id: str
    node: int | None
    is_up: bool
    is_rdma: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """What is in the machine, and how it is joined."""

    nodes: tuple[MemoryNode, ...]
    sockets: tuple[frozenset[int], ...] = ()
    """The cores of each processor package."""
    gpus: tuple[Gpu, ...] = ()
    nics: tuple[Nic, ...] = ()
    gpu_links: Mapping[tuple[int, int], Link] = field(default_factory=dict)
    """By the indices of two GPUs, the lower first."""
    nic_links: Mapping[tuple[int, str], Link] = field(default_factory=dict)
    """By the index of a GPU and the name of a network card."""
    notes: tuple[str, ...] = ()
    """What could not be read, and why, for a person."""

    @property
    def cpus(self) -> frozenset[int]:
        """All cores."""
        return frozenset[int]().union(*(node.cpus for node in self.nodes))

    def link(self, one: int, other: int) -> Link:
        """Return how two GPUs are joined, by index; in any order."""
        return self.gpu_links.get((min(one, other), max(one, other)), Link(None))
