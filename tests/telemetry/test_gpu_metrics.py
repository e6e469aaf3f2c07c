from autoscaler.telemetry.gpu_metrics import gpu_metrics
from autoscaler.telemetry.gpu_reading import GpuPart, GpuProcess, GpuReading, Throttle

WELL = GpuReading(
    0,
    name="H200",
    uuid="GPU-1",
    busy_ratio=0.95,
    memory_used=300.0,
    throttled=frozenset({Throttle.POWER_CAP}),
    processes=(GpuProcess(1, 100.0, 0.5),),
    parts=(GpuPart("MIG-1", 100.0, 500.0),),
)
LOST = GpuReading(1, lost="GPU is lost")


def samples(*readings):
    return {
        (sample.name.removeprefix("autoscaler_gpu_"), *sample.labels.values()): sample.value
        for family in gpu_metrics(readings)
        for sample in family.samples
    }


def test_what_is_known_is_told_and_what_is_not_has_no_sample():
    told = samples(WELL)
    assert told["busy_ratio", "0"] == 0.95
    assert told["memory_used_bytes", "0"] == 300.0
    assert told["processes", "0"] == 1.0
    assert not [key for key in told if key[0] in ("power_watts", "memory_busy_ratio")]


def test_every_reason_for_throttling_has_a_sample_so_that_its_end_is_seen():
    told = samples(WELL)
    assert told["throttled", "0", "power_cap"] == 1.0
    assert told["throttled", "0", "hardware_thermal"] == 0.0


def test_a_lost_gpu_is_down_and_tells_nothing_else():
    assert samples(LOST) == {("up", "1"): 0.0}


def test_the_parts_of_a_divided_gpu_tell_their_memory():
    assert samples(WELL)["part_memory_used_bytes", "0", "0"] == 100.0


def test_a_machine_without_gpus_has_no_such_metrics():
    assert list(gpu_metrics(())) == []


def test_the_words_of_the_busy_ratio_say_that_it_is_not_occupancy():
    family = next(iter(gpu_metrics((WELL,))))
    assert family.name == "autoscaler_gpu_busy_ratio"
    assert "NOT occupancy" in family.documentation
    assert "autoscaler_occupancy_ratio" in family.documentation
