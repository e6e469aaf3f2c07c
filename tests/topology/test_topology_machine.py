"""The machine as it is read: through the driver's real binding, and from trees as the kernel shows them."""

import json
import os
import subprocess
import sys

import pytest

from autoscaler.nvml import Fault, FaultKind
from autoscaler.topology import read_machine as reading
from autoscaler.topology.read_sysfs import Sysfs
from tests.fakes.nvml_library import ABSENT, NvmlLibrary, can_be_built
from tests.fakes.sysfs_tree import FOUR_GPUS, SysfsTree, two_sockets

real_binding = pytest.mark.skipif(not can_be_built(), reason=ABSENT)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return NvmlLibrary(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def sysfs(tmp_path):
    return two_sockets(tmp_path / "sys").root


def topology(library, sysfs, *words):
    done = library.run("-m", "autoscaler", "topology", "--json", "--sysfs", str(sysfs), *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def paths(found):
    return {tuple(each["gpus"]): each["path"] for each in found["gpu_links"]}


@real_binding
def test_gpus_are_placed_by_the_driver_and_the_kernel_together(library, sysfs):
    library.says(*FOUR_GPUS, "gpu.2.name H200")
    found = topology(library, sysfs)
    assert found["gpus"][2] == {
        "index": 2,
        "name": "H200",
        "uuid": "GPU-00000000-0000-0000-0000-000000000002",
        "bus_id": "0000:81:00.0",
        "node": 1,
        "cpus": "1",
        "fault": None,
    }
    assert paths(found) == {
        (0, 1): "PIX",
        (0, 2): "SYS",
        (0, 3): "SYS",
        (1, 2): "SYS",
        (1, 3): "SYS",
        (2, 3): "PHB",
    }
    assert found["link_domains"] == [[0, 1], [2, 3]]
    assert found["notes"] == []


@real_binding
def test_network_cards_are_near_the_gpus_of_their_switch(library, sysfs):
    library.says(*FOUR_GPUS)
    found = topology(library, sysfs)
    assert [nic["name"] for nic in found["nics"]] == ["eth0/eth1", "mlx5_0/ib0"]
    ways = {(each["gpu"], each["nic"]): each["path"] for each in found["nic_links"]}
    assert ways[0, "mlx5_0/ib0"] == ways[1, "mlx5_0/ib0"] == "PIX"
    assert ways[2, "mlx5_0/ib0"] == "SYS"
    assert ways[2, "eth0/eth1"] == "PHB"


@real_binding
def test_where_the_driver_knows_no_paths_the_kernel_does(library, sysfs):
    library.says(*FOUR_GPUS, "error.nvmlDeviceGetTopologyCommonAncestor 3")
    found = topology(library, sysfs)
    assert (paths(found)[0, 1], paths(found)[0, 2], paths(found)[2, 3]) == ("PIX", "SYS", "PHB")


@real_binding
def test_direct_nvlinks_are_counted_and_those_that_are_down_are_not(library, sysfs):
    links = [
        "gpu.0.nvlink.0 1",
        "gpu.0.nvlink.1 1",
        "gpu.0.nvlink.2 down",
        "gpu.1.nvlink.0 0",
        "gpu.1.nvlink.1 0",
    ]
    library.says(*FOUR_GPUS, *links)
    found = topology(library, sysfs)
    assert [each["nvlinks"] for each in found["gpu_links"]] == [2, 0, 0, 0, 0, 0]
    assert found["link_domains"] == [[0, 1], [2, 3]]


@real_binding
def test_an_nvswitch_joins_all_by_as_many_links_as_both_have(library, sysfs):
    links = [f"gpu.{gpu}.nvlink.{link} switch" for gpu in range(4) for link in range(4 if gpu else 3)]
    library.says(*FOUR_GPUS, *links)
    found = topology(library, sysfs)
    assert [each["nvlinks"] for each in found["gpu_links"]] == [3, 3, 3, 4, 4, 4]
    assert found["link_domains"] == [[0, 1, 2, 3]]


@real_binding
def test_one_lost_gpu_costs_nothing_but_itself(library, sysfs):
    library.says("gpu.1.error 15", *FOUR_GPUS)
    found = topology(library, sysfs)
    assert found["gpus"][1]["fault"].startswith("GPU is lost")
    assert found["gpus"][0]["node"] == 0
    assert set(paths(found)) == {(0, 2), (0, 3), (2, 3)}
    assert found["notes"] == [
        "GPU 1 cannot be asked: GPU is lost: it fell off the bus; reset it or restart the machine"
    ]


@pytest.fixture
def held_on_core_0():
    """A process that runs on core 0 only."""
    if len(os.sched_getaffinity(0)) < 2 or not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("needs a machine with the cores 0 and 1")
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    os.sched_setaffinity(process.pid, {0})
    yield process.pid
    process.kill()
    process.communicate()


@real_binding
def test_a_real_process_on_the_wrong_socket_is_warned_of(library, sysfs, held_on_core_0):
    library.says(*FOUR_GPUS, f"gpu.2.proc.0 {held_on_core_0} 50 10 0 0 1000000")
    mistakes = topology(library, sysfs)["misplaced"]  # the real machine may lack the node of this tree, too
    found = next(each for each in mistakes if each["mistake"] == "wrong_socket")
    assert found["who"].startswith(f"process {held_on_core_0} (python")
    assert "held on cores 0 (socket 0), but its GPU 2 is next to cores 1 (socket 1)" in found["text"]


@real_binding
def test_a_real_process_on_the_right_socket_is_not(library, sysfs, held_on_core_0):
    library.says(*FOUR_GPUS, f"gpu.0.proc.0 {held_on_core_0} 50 10 0 0 1000000")
    found = topology(library, sysfs)
    assert found["misplaced"] == []
    assert [(each["pid"], each["cpus"], each["gpus"]) for each in found["processes"]] == [
        (held_on_core_0, "0", [0])
    ]


@real_binding
def test_the_gpus_that_a_configuration_gives_to_one_replica_are_judged(library, sysfs, tmp_path):
    library.says(*FOUR_GPUS)
    config = tmp_path / "config.yaml"
    config.write_text(
        "pools:\n  chat:\n    server: {kind: openai}\n"
        "    platform:\n      kind: local\n      command: [server, --port, '{port}']\n"
        "      env: {CUDA_VISIBLE_DEVICES: '{gpu}'}\n      gpus: ['0,1', '2,0']\n"
    )
    (found,) = topology(library, sysfs, "-c", str(config))["misplaced"]
    assert found["who"] == 'pools.chat.platform.gpus "2,0"'
    assert found["mistake"] == "split_replica"


@real_binding
def test_the_screen_shows_the_matrix_with_its_legend(library, sysfs):
    library.says(*FOUR_GPUS, "gpu.0.nvlink.0 1", "gpu.1.nvlink.0 0")
    done = library.run("-m", "autoscaler", "topology", "--sysfs", str(sysfs))
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "2 sockets, 2 memory nodes, 2 cores, 4 GPUs, 2 network cards" in lines
    assert "0 0 0 0000:01:00.0 Fake GPU" in lines
    assert "GPU 0 · NV1 SYS SYS 0" in lines
    assert "mlx5_0/ib0 PIX PIX SYS SYS 0" in lines
    assert any("SYS through the interconnect between memory nodes: slow" in line for line in lines)
    assert any(line.startswith("2 link domains: GPU 0-1; 2-3.") for line in lines)


@real_binding
def test_a_driver_that_is_not_loaded_is_told_with_the_gpus_on_the_bus(library, sysfs):
    library.says("error.nvmlInit 9")
    found = topology(library, sysfs)
    assert found["gpus"] == []
    (note,) = found["notes"]
    assert note.startswith("4 NVIDIA GPUs on the PCI bus (0000:01:00.0, ")
    assert note.endswith("the NVIDIA driver is installed but not loaded")


def test_a_machine_without_gpu_shows_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "gpu_handles", lambda: Fault(FaultKind.NO_DRIVER, "no driver here"))
    tree = SysfsTree(tmp_path / "sys")
    tree.node(0, "0-7", "10")
    found = reading.read_machine("TAG", tree.root)
    assert found.machine.notes[0].startswith("no GPU: ")
    assert found.machine.cpus == frozenset(range(8))
    assert found.processes == ()


def test_a_kernel_without_memory_nodes_has_one(tmp_path):
    root = tmp_path / "sys"
    (root / "devices/system/cpu").mkdir(parents=True)
    (root / "devices/system/cpu/online").write_text("0-3\n")
    (node,) = Sysfs(root).nodes()
    assert node.cpus == {0, 1, 2, 3}


def test_nothing_at_all_is_no_error(tmp_path):
    empty = Sysfs(tmp_path)
    assert (empty.sockets(), empty.nics(), empty.nvidia_gpus(), empty.way("0000:01:00.0")) == ((), (), (), ())
    assert empty.node_of("0000:01:00.0") is None


def test_firmware_that_knows_no_node_is_believed(tmp_path):
    tree = SysfsTree(tmp_path / "sys")
    tree.device("pci0000:00/0000:00:03.0", numa_node="-1")
    assert Sysfs(tree.root).node_of("0000:00:03.0") is None


def test_a_folder_that_is_none_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "autoscaler", "topology", "--sysfs", str(tmp_path / "gone")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "--sysfs" in done.stderr and "is no folder" in done.stderr
