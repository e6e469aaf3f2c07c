"""GPU readings through the real binding, in processes that find a stand-in for the driver's library."""

import json

import pytest

from tests.fakes.nvml_library import ABSENT, NvmlLibrary, can_be_built

pytestmark = pytest.mark.skipif(not can_be_built(), reason=ABSENT)

READ = """
from autoscaler.telemetry.gpu_nvml import GpuReader
from autoscaler.telemetry.plain import encode
print(encode(GpuReader().read()).decode())
"""
ONE_GPU = (
    "gpu.0.name H200",
    "gpu.0.util 95",
    "gpu.0.mem_util 40",
    "gpu.0.mem_total 1000",
    "gpu.0.mem_used 300",
    "gpu.0.mem_reserved 50",
    "gpu.0.power_mw 250123",
    "gpu.0.power_limit_mw 700000",
    "gpu.0.temp 41",
    "gpu.0.throttle 0x60",
    "gpu.0.proc.0 1234 30 10 0 0 250",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return NvmlLibrary(tmp_path_factory.mktemp("nvml"))


def reading(library, *lines):
    library.says(*lines)
    done = library.run("-c", READ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_that_a_card_tells_is_read_in_our_units(library):
    (gpu,) = reading(library, *ONE_GPU)
    assert gpu["name"] == "H200"
    assert (gpu["busy_ratio"], gpu["memory_busy_ratio"]) == (0.95, 0.4)
    assert (gpu["memory_used"], gpu["memory_total"]) == (300, 1000)
    assert (gpu["power"], gpu["power_limit"], gpu["temperature"]) == (pytest.approx(250.123), 700, 41)
    assert set(gpu["throttled"]) == {"software_thermal", "hardware_thermal"}
    assert gpu["processes"] == [{"pid": 1234, "memory": 250, "busy_ratio": pytest.approx(0.3)}]
    assert (gpu["parts"], gpu["lost"], gpu["faults"]) == ([], "", {})


def test_a_card_without_sensors_lacks_only_these(library):
    (gpu,) = reading(library, "gpu.0.util 12")
    assert gpu["busy_ratio"] == pytest.approx(0.12)
    assert (gpu["power"], gpu["power_limit"], gpu["temperature"], gpu["throttled"]) == (
        None,
        None,
        None,
        None,
    )
    assert set(gpu["faults"]) == {"power", "power_limit", "temperature", "throttled"}
    assert gpu["faults"]["power"] == "Not Supported"


def test_an_old_driver_without_the_newer_question_still_tells_the_memory(library):
    (gpu,) = reading(library, "error.nvmlDeviceGetMemoryInfo_v2 13", *ONE_GPU)
    assert (gpu["memory_used"], gpu["memory_total"]) == (350, 1000)


def test_a_divided_card_tells_its_parts_and_no_busy_ratio(library):
    first = ["gpu.0.mig.0.mem_total 500", "gpu.0.mig.0.mem_used 100"]
    (gpu,) = reading(library, "gpu.0.mig_mode 1", *first, "gpu.0.mig.3.mem_total 200", *ONE_GPU)
    assert gpu["busy_ratio"] is None
    assert set(gpu["faults"]) == {"busy_ratio", "process_busy_ratio"}
    assert [(part["memory_used"], part["memory_total"]) for part in gpu["parts"]] == [(100, 500), (0, 200)]
    assert gpu["parts"][0]["uuid"].startswith("MIG-")


def test_a_lost_gpu_costs_nothing_but_itself(library):
    lost, well = reading(library, "count 2", "gpu.0.error 15", "gpu.1.util 50")
    assert lost["lost"].startswith("GPU is lost")
    assert lost["busy_ratio"] is None
    assert (well["index"], well["busy_ratio"], well["lost"]) == (1, 0.5, "")


def test_one_question_that_may_not_be_asked_costs_one_value(library):
    (gpu,) = reading(library, "gpu.0.error.nvmlDeviceGetPowerUsage 4", *ONE_GPU)
    assert (gpu["power"], gpu["power_limit"]) == (None, 700)
    assert gpu["faults"] == {"power": "Insufficient Permissions"}


def test_without_a_driver_there_is_a_reason_and_no_reading(library):
    assert reading(library, "error.nvmlInit 9") == {
        "kind": "no_driver",
        "text": "the NVIDIA driver is installed but not loaded",
    }


def test_a_driver_that_goes_away_and_comes_back_is_opened_again(library):
    library.says("gpu.0.util 10")
    script = f"""
from pathlib import Path
from autoscaler.telemetry.gpu_nvml import GpuReader
from autoscaler.telemetry.plain import to_plain
reader, state, seen = GpuReader(), Path({str(library.state)!r}), []
for line in ("gpu.0.util 10", "error.nvmlDeviceGetCount_v2 1", "gpu.0.util 20"):
    state.write_text(line)
    found = to_plain(reader.read())
    seen.append(found[0]["busy_ratio"] if isinstance(found, list) else found["text"])
print(seen)
"""
    done = library.run("-c", script)
    assert done.stdout.strip() == "[0.1, 'Uninitialized', 0.2]", done.stderr


def test_a_process_that_idles_is_not_told_from_an_old_sample(library):
    script = """
from autoscaler.telemetry.gpu_nvml import GpuReader
reader = GpuReader()
print([reader.read()[0].processes[0].busy_ratio for _ in range(2)])
"""
    library.says("gpu.0.proc.0 1234 30 10 0 0 250")
    done = library.run("-c", script)
    assert done.stdout.strip() == "[0.3, nan]", done.stderr
