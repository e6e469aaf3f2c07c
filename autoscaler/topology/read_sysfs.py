"""Memory nodes, sockets, network cards and PCI addresses, as the kernel shows them under /sys.

In a container /sys may be cut down or absent. Whatever is not there is unknown, and nothing raises.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from autoscaler.topology.cpu_list import parse_cpu_list
from autoscaler.topology.machine import MemoryNode, Nic
from autoscaler.topology.pci import Way, way_of

_NVIDIA = "0x10de"
_DISPLAY_CLASS = "0x03"
"""First byte of the class of a PCI device that is a GPU."""


@dataclass(frozen=True, slots=True)
class Sysfs:
    """The tree of the kernel, below `root`."""

    root: Path = Path("/sys")

    def nodes(self) -> tuple[MemoryNode, ...]:
        """Return the memory nodes; a kernel without any has one, with all cores."""
        folder = self.root / "devices/system/node"
        numbers = sorted(int(each.name[4:]) for each in folder.glob("node*") if each.name[4:].isdigit())
        if not numbers:
            return (MemoryNode(0, _numbers(self.root / "devices/system/cpu/online"), 0),)
        return tuple(
            MemoryNode(
                number,
                _numbers(folder / f"node{number}/cpulist"),
                _memory(folder / f"node{number}/meminfo"),
                tuple(map(int, _text(folder / f"node{number}/distance").split())),
            )
            for number in numbers
        )

    def sockets(self) -> tuple[frozenset[int], ...]:
        """Return the cores of each processor package, in the order of the packages' numbers."""
        packages: dict[int, set[int]] = {}
        for cpu in (self.root / "devices/system/cpu").glob("cpu[0-9]*"):
            package = _text(cpu / "topology/physical_package_id")
            if package.isdigit():
                packages.setdefault(int(package), set()).add(int(cpu.name[3:]))
        return tuple(frozenset(cpus) for _, cpus in sorted(packages.items()))

    def nics(self) -> tuple[Nic, ...]:
        """Return the network cards that are devices, by name; those of RDMA with both their names."""
        interfaces: dict[str, list[Path]] = {}
        for kind in ("infiniband", "net"):
            for each in sorted((self.root / "class" / kind).glob("*")):
                if way := self._way(each / "device"):
                    interfaces.setdefault(way[-1], []).append(each)
        return tuple(
            sorted((self._nic(bus_id, each) for bus_id, each in interfaces.items()), key=lambda nic: nic.name)
        )

    def way(self, bus_id: str) -> Way:
        """Return the way to a PCI device; empty if it is not there."""
        return self._way(self.root / "bus/pci/devices" / bus_id)

    def node_of(self, bus_id: str) -> int | None:
        """Return the memory node of a PCI device; None if the firmware does not tell."""
        text = _text(self.root / "bus/pci/devices" / bus_id / "numa_node")
        return int(text) if text.isdigit() else None

    def cpus_of(self, bus_id: str) -> frozenset[int]:
        """Return the cores next to a PCI device; empty if nobody tells."""
        return _numbers(self.root / "bus/pci/devices" / bus_id / "local_cpulist")

    def nvidia_gpus(self) -> tuple[str, ...]:
        """Return the addresses of NVIDIA's GPUs on the bus, whether a driver is there or not."""
        return tuple(
            sorted(
                each.name
                for each in (self.root / "bus/pci/devices").glob("*")
                if _text(each / "vendor") == _NVIDIA and _text(each / "class").startswith(_DISPLAY_CLASS)
            )
        )

    def _nic(self, bus_id: str, interfaces: list[Path]) -> Nic:
        is_up = any(
            _text(each / "operstate") == "up" or "ACTIVE" in _text(each / "ports/1/state")
            for each in interfaces
        )
        is_rdma = any(each.parent.name == "infiniband" for each in interfaces)
        return Nic("/".join(each.name for each in interfaces), bus_id, self.node_of(bus_id), is_up, is_rdma)

    def _way(self, link: Path) -> Way:
        return way_of(os.path.realpath(link)) if link.exists() else ()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _numbers(path: Path) -> frozenset[int]:
    try:
        return parse_cpu_list(_text(path))
    except ValueError:
        return frozenset()


def _memory(meminfo: Path) -> int:
    """Return the memory of a node [bytes], from a line such as `Node 0 MemTotal: 65873220 kB`."""
    for line in _text(meminfo).splitlines():
        words = line.split()
        if "MemTotal:" in words and words[-2].isdigit():
            return int(words[-2]) * 1024
    return 0
