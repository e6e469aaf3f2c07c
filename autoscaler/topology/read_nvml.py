"""The GPUs of the machine and how they are joined, as the driver tells; what it does not tell, /sys may."""

from itertools import combinations
from typing import Any

import pynvml

from autoscaler.nvml import Fault, answered, ask
from autoscaler.topology.machine import Gpu, Link, PciPath
from autoscaler.topology.pci import bus_id_of, pci_path
from autoscaler.topology.read_sysfs import Sysfs

_BITS = 64
"""Of a word in the driver's masks."""
_WORDS = 64
"""Words asked for: 4096 cores."""


def read_gpu(index: int, handle: Any, sysfs: Sysfs) -> Gpu:
    """Return one GPU; `handle` may be the fault for which there is none."""
    if isinstance(handle, Fault):
        return Gpu(index, fault=handle.text)
    pci = ask(pynvml.nvmlDeviceGetPciInfo, handle)
    if isinstance(pci, Fault):
        return Gpu(index, fault=pci.text)
    bus_id = bus_id_of(_text(pci.busId))
    node = sysfs.node_of(bus_id)
    nodes = _mask(ask(pynvml.nvmlDeviceGetMemoryAffinity, handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE))
    if node is None and len(nodes) == 1:
        node = min(nodes)
    cpus = _mask(ask(pynvml.nvmlDeviceGetCpuAffinity, handle, _WORDS)) or sysfs.cpus_of(bus_id)
    name, uuid = (ask(question, handle) for question in (pynvml.nvmlDeviceGetName, pynvml.nvmlDeviceGetUUID))
    return Gpu(index, _text(answered(name, "?")), _text(answered(uuid, "")), bus_id, node, cpus)


def read_gpu_links(gpus: tuple[Gpu, ...], handles: list[Any], sysfs: Sysfs) -> dict[tuple[int, int], Link]:
    """Return how each two GPUs are joined; a GPU that cannot be asked is joined to none."""
    working = [gpu for gpu in gpus if not gpu.fault]
    ends = {gpu.index: _nvlink_ends(handles[gpu.index], working) for gpu in working}
    return {
        (one.index, other.index): Link(
            _path(handles[one.index], handles[other.index], one, other, sysfs),
            _nvlinks(ends[one.index], ends[other.index], other.index),
        )
        for one, other in combinations(working, 2)
    }


_SWITCH = -1
"""In place of a GPU: an NVLink that leads into an NVSwitch."""


def _nvlinks(ends: list[int], other_ends: list[int], other: int) -> int:
    """Return the NVLinks from one GPU to another: direct ones, and through a switch as many as both have."""
    return ends.count(other) + min(ends.count(_SWITCH), other_ends.count(_SWITCH))


def _nvlink_ends(handle: Any, gpus: list[Gpu]) -> list[int]:
    """Return what each active NVLink of a GPU leads to: the index of a GPU, or `_SWITCH`.

    Links to GPUs that this program cannot see are left out. In a virtual machine the switch may have no
    address, so the kind of the other end is asked for first.
    """
    by_bus_id = {gpu.bus_id: gpu.index for gpu in gpus}
    ends = (_nvlink_end(handle, link, by_bus_id) for link in range(pynvml.NVML_NVLINK_MAX_LINKS))
    return [end for end in ends if end is not None]


def _nvlink_end(handle: Any, link: int, by_bus_id: dict[str, int]) -> int | None:
    if ask(pynvml.nvmlDeviceGetNvLinkState, handle, link) != pynvml.NVML_FEATURE_ENABLED:
        return None
    kind = ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
    if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
        return _SWITCH
    remote = ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
    if isinstance(remote, Fault):
        return None
    return by_bus_id.get(bus_id_of(_text(remote.busId)), _SWITCH if isinstance(kind, Fault) else None)


def _path(handle: Any, other_handle: Any, gpu: Gpu, other: Gpu, sysfs: Sysfs) -> PciPath | None:
    level = ask(pynvml.nvmlDeviceGetTopologyCommonAncestor, handle, other_handle)
    if not isinstance(level, Fault) and level in set(PciPath):
        return PciPath(level)
    same_node = gpu.node is not None and gpu.node == other.node
    return pci_path(sysfs.way(gpu.bus_id), sysfs.way(other.bus_id), same_node)


def _mask(words: Any) -> frozenset[int]:
    """Return the numbers of the bits that are set in a mask of the driver; empty for a fault."""
    if isinstance(words, Fault):
        return frozenset()
    return frozenset(
        place * _BITS + bit for place, word in enumerate(words) for bit in range(_BITS) if word >> bit & 1
    )


def _text(given: Any) -> str:
    return given.decode(errors="replace") if isinstance(given, bytes) else str(given)
