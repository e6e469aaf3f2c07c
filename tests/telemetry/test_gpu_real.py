"""The readings and the paths of a real GPU, where the machine has one."""

import pytest

from autoscaler.nvml import Fault
from autoscaler.telemetry.gpu_nvml import GpuReader
from autoscaler.topology.read_machine import read_machine

found = GpuReader().read()
pytestmark = pytest.mark.skipif(isinstance(found, Fault) or not found, reason=f"needs an NVIDIA GPU: {found}")


def test_a_real_gpu_reads_what_can_be():
    for gpu in GpuReader().read():
        assert gpu.lost == ""
        assert gpu.uuid.startswith("GPU-")
        assert gpu.memory_total > 0
        assert 0 <= gpu.memory_used <= gpu.memory_total
        assert "busy_ratio" in gpu.faults or 0 <= gpu.busy_ratio <= 1
        assert "power" in gpu.faults or 1 < gpu.power < 2000


def test_a_real_machine_knows_where_its_gpus_are():
    machine = read_machine("NO_TAG").machine
    assert len(machine.gpus) == len(found)
    assert all(gpu.bus_id and gpu.cpus <= machine.cpus for gpu in machine.gpus)
