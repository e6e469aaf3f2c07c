"""A machine and its GPU processes, read from the driver and the kernel in one go."""

from dataclasses import dataclass
from pathlib import Path

from autoscaler.nvml import Fault, gpu_handles, open_nvml
from autoscaler.topology.machine import Gpu, Link, Machine, Nic
from autoscaler.topology.pci import pci_path
from autoscaler.topology.placement import ServerProcess
from autoscaler.topology.read_nvml import read_gpu, read_gpu_links
from autoscaler.topology.read_processes import read_processes
from autoscaler.topology.read_sysfs import Sysfs


@dataclass(frozen=True, slots=True)
class Found:
    """What is there."""

    machine: Machine
    processes: tuple[ServerProcess, ...] = ()


def read_machine(replica_tag: str, sysfs_root: Path = Path("/sys")) -> Found:
    """Read everything; what cannot be read is a note of the machine. Blocks: the driver may be slow."""
    sysfs = Sysfs(sysfs_root)
    nodes, sockets, nics = sysfs.nodes(), sysfs.sockets(), sysfs.nics()
    with open_nvml() as fault:
        handles = fault or gpu_handles()
        if isinstance(handles, Fault):
            return Found(Machine(nodes, sockets, nics=nics, notes=_without_gpus(handles, sysfs)))
        gpus = tuple(read_gpu(index, handle, sysfs) for index, handle in enumerate(handles))
        notes = tuple(f"GPU {gpu.index} cannot be asked: {gpu.fault}" for gpu in gpus if gpu.fault)
        machine = Machine(
            nodes=nodes,
            sockets=sockets,
            gpus=gpus,
            nics=nics,
            gpu_links=read_gpu_links(gpus, handles, sysfs),
            nic_links={(gpu.index, nic.name): _nic_link(gpu, nic, sysfs) for gpu in gpus for nic in nics},
            notes=notes if gpus else ("no GPU: the driver has none",),
        )
        return Found(machine, tuple(read_processes(gpus, handles, replica_tag)))


def _without_gpus(fault: Fault, sysfs: Sysfs) -> tuple[str, ...]:
    on_bus = sysfs.nvidia_gpus()
    if not on_bus:
        return (f"no GPU: {fault.text}",)
    return (
        f"{len(on_bus)} NVIDIA GPU{'s' * (len(on_bus) > 1)} on the PCI bus ({', '.join(on_bus)}), but the "
        f"driver cannot be asked: {fault.text}",
    )


def _nic_link(gpu: Gpu, nic: Nic, sysfs: Sysfs) -> Link:
    same_node = gpu.node is not None and gpu.node == nic.node
    return Link(pci_path(sysfs.way(gpu.bus_id), sysfs.way(nic.bus_id), same_node) if gpu.bus_id else None)
