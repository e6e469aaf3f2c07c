"""A tree as the kernel shows it under /sys, made of files in a folder."""

from pathlib import Path


class SysfsTree:
    """Writes the parts of /sys that are read; what is not written is absent, as in a container."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def node(self, number: int, cpus: str, distances: str, memory_kib: int = 64 * 2**20) -> None:
        """Add a memory node."""
        folder = f"devices/system/node/node{number}"
        self._write(f"{folder}/cpulist", cpus)
        self._write(f"{folder}/distance", distances)
        self._write(
            f"{folder}/meminfo", f"Node {number} MemTotal:    {memory_kib} kB\nNode {number} MemFree: 1 kB"
        )

    def core(self, number: int, socket: int) -> None:
        """Add a core of a socket."""
        self._write(f"devices/system/cpu/cpu{number}/topology/physical_package_id", str(socket))

    def device(self, way: str, **files: str) -> None:
        """Add a PCI device by its way, `pci0000:00/0000:00:01.0/0000:01:00.0`, with what its files say."""
        for name, text in files.items():
            self._write(f"devices/{way}/{name}", text)
        (self.root / "devices" / way).mkdir(parents=True, exist_ok=True)
        self._link(f"bus/pci/devices/{Path(way).name}", f"devices/{way}")

    def network(self, kind: str, name: str, way: str, **files: str) -> None:
        """Add an interface of a device; kind `net` or `infiniband`."""
        for file, text in files.items():
            self._write(f"class/{kind}/{name}/{file}", text)
        self._link(f"class/{kind}/{name}/device", f"devices/{way}")

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def _link(self, path: str, target: str) -> None:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(self.root / target)


def two_sockets(root: Path) -> SysfsTree:
    """Two sockets with a core each; two GPUs and a network card on each, on bus 01, 02 and 81, 82.

    On the first socket both GPUs and the RDMA card share a switch; on the second each has its own port.
    """
    tree = SysfsTree(root)
    tree.node(0, "0", "10 21")
    tree.node(1, "1", "21 10")
    tree.core(0, socket=0)
    tree.core(1, socket=1)
    switch = "pci0000:00/0000:00:01.0/0000:10:00.0"
    tree.device(
        f"{switch}/0000:11:00.0/0000:01:00.0", numa_node="0", vendor="0x10de", **{"class": "0x030200"}
    )
    tree.device(
        f"{switch}/0000:11:01.0/0000:02:00.0", numa_node="0", vendor="0x10de", **{"class": "0x030200"}
    )
    tree.device(f"{switch}/0000:11:02.0/0000:03:00.0", numa_node="0")
    tree.network("infiniband", "mlx5_0", f"{switch}/0000:11:02.0/0000:03:00.0")
    tree.network("net", "ib0", f"{switch}/0000:11:02.0/0000:03:00.0", operstate="up")
    far = "pci0000:80"
    tree.device(f"{far}/0000:80:01.0/0000:81:00.0", numa_node="1", vendor="0x10de", **{"class": "0x030200"})
    tree.device(f"{far}/0000:80:02.0/0000:82:00.0", numa_node="1", vendor="0x10de", **{"class": "0x030200"})
    tree.device(f"{far}/0000:80:03.0/0000:83:00.0", numa_node="1")
    tree.network("net", "eth0", f"{far}/0000:80:03.0/0000:83:00.0", operstate="up")
    tree.network("net", "eth1", f"{far}/0000:80:03.0/0000:83:00.0", operstate="down")
    return tree


FOUR_GPUS = (
    "count 4",
    "gpu.0.pci_bus 0x01",
    "gpu.1.pci_bus 0x02",
    "gpu.2.pci_bus 0x81",
    "gpu.3.pci_bus 0x82",
    "gpu.0.cpus 0",
    "gpu.1.cpus 0",
    "gpu.2.cpus 1",
    "gpu.3.cpus 1",
    "topo.0.1 10",
    "topo.2.3 30",
)
"""The GPUs of `two_sockets`, for the stand-in of the driver's library; without NVLink."""
