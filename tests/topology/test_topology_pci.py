"""How far apart devices are, by the meanings that `nvidia-smi topo -m` prints in its legend."""

import pytest

from autoscaler.topology.machine import PciPath
from autoscaler.topology.pci import bus_id_of, pci_path, way_of

GPU = ("pci0000:00", "0000:00:01.0", "0000:10:00.0", "0000:11:00.0", "0000:01:00.0")


@pytest.mark.parametrize(
    "other, path",
    [
        (("pci0000:00", "0000:00:01.0", "0000:10:00.0", "0000:11:01.0", "0000:02:00.0"), PciPath.SWITCH),
        # A second switch below the first.
        (
            (
                "pci0000:00",
                "0000:00:01.0",
                "0000:10:00.0",
                "0000:11:01.0",
                "0000:20:00.0",
                "0000:21:00.0",
                "0000:22:00.0",
            ),
            PciPath.SWITCHES,
        ),
        (("pci0000:00", "0000:00:02.0", "0000:03:00.0"), PciPath.HOST_BRIDGE),
        (("pci0000:80", "0000:80:01.0", "0000:81:00.0"), PciPath.SYSTEM),
        ((), None),
    ],
)
def test_two_devices_meet_at_what_is_above_both(other, path):
    assert pci_path(GPU, other, same_node=False) is path
    assert pci_path(other, GPU, same_node=False) is path


def test_other_host_bridges_of_one_memory_node_are_nearer_than_another_socket():
    assert pci_path(GPU, ("pci0000:40", "0000:40:00.0"), same_node=True) is PciPath.NODE


def test_two_functions_of_one_card_are_next_to_each_other():
    port = ("pci0000:00", "0000:00:01.0")
    assert pci_path((*port, "0000:03:00.0"), (*port, "0000:03:00.1"), same_node=True) is PciPath.SWITCH


def test_the_way_is_in_the_path_and_ends_at_the_pci_device():
    path = "/sys/devices/pci0000:00/0000:00:03.0/virtio2"
    assert way_of(path) == ("pci0000:00", "0000:00:03.0")
    assert way_of("/sys/devices/virtual/net/lo") == ()


def test_the_driver_and_the_kernel_write_an_address_differently():
    assert bus_id_of("00000000:3B:00.0") == "0000:3b:00.0"
