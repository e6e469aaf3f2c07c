"""How far apart two PCI devices are, from where they hang in the tree of buses.

/sys/devices names a device by its way down from the processor: host bridge, bridges, device. Two devices
that share a bridge meet there; each PCIe switch puts two bridges, its upstream and its downstream port, into
the way. Below the place where they meet a device behind the same switch has one bridge more, the downstream
port; with more there are several switches between them.
"""

import re

from autoscaler.topology.machine import PciPath

_HOST_BRIDGE = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
_DEVICE = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

Way = tuple[str, ...]
"""From the host bridge to the device itself: `("pci0000:3a", "0000:3a:00.0", "0000:3b:00.0")`."""


def way_of(path: str) -> Way:
    """Return the way to the PCI device in a path under /sys/devices; empty if there is none in it."""
    return tuple(part for part in path.split("/") if _HOST_BRIDGE.fullmatch(part) or _DEVICE.fullmatch(part))


def bus_id_of(nvml_bus_id: str) -> str:
    """Return an address of NVML (`00000000:3B:00.0`) as /sys/bus/pci writes it (`0000:3b:00.0`)."""
    domain, colon, rest = nvml_bus_id.lower().partition(":")
    return f"{domain[-4:]}{colon}{rest}"


def pci_path(one: Way, other: Way, same_node: bool) -> PciPath | None:
    """Return what two devices have in common above them.

    Parameters
    ----------
    one, other : Way
        Where they hang; if either is empty the answer is None.
    same_node : bool
        Whether they are at the same memory node, which tells where they share no host bridge.
    """
    if not one or not other:
        return None
    shared = 0
    for here, there in zip(one[:-1], other[:-1], strict=False):
        if here != there:
            break
        shared += 1
    if shared == 0:
        return PciPath.NODE if same_node else PciPath.SYSTEM
    if shared == 1 and _HOST_BRIDGE.fullmatch(one[0]):
        return PciPath.HOST_BRIDGE
    bridges_below = max(len(one), len(other)) - 1 - shared
    return PciPath.SWITCH if bridges_below <= 1 else PciPath.SWITCHES
