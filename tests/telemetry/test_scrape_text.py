"""Texts of exporters as their documentation shows them, cut to what matters, and what is read from each."""

import time

import pytest

from autoscaler.telemetry.scrape.exposition_text import SERIES_MAX, read_exposition
from autoscaler.telemetry.scrape.meter import SignalMeter
from autoscaler.telemetry.scrape.presets import PRESETS

PLAIN, OPENMETRICS = "text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text; version=1.0.0"

TEXTS = {
    "triton": """
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="a",version="1"} 1642
nv_inference_request_success{model="b",version="1"} 8
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="a",version="1"} 3
nv_inference_pending_request_count{model="b",version="1"} 2
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.8
nv_gpu_utilization{gpu_uuid="GPU-2"} 0.4
# TYPE nv_gpu_memory_used_bytes gauge
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1000
# TYPE nv_gpu_power_usage gauge
nv_gpu_power_usage{gpu_uuid="GPU-1"} 250.5
""",
    "vllm": """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 500
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{le="+Inf",model_name="m"} 3
vllm:iteration_tokens_total_sum{model_name="m"} 3
""",
    "sglang": """
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 5
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 1
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.28
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 8.128902e+06
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 7.557572e+06
""",
    "llama.cpp": """
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 2
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 7
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 33065
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 7801
""",
    "tgi": """
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 6
# TYPE tgi_queue_size gauge
tgi_queue_size 9
# TYPE tgi_request_count counter
tgi_request_count 40
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="+Inf"} 3
tgi_request_generated_tokens_sum 120
tgi_request_generated_tokens_count 3
""",
    "dcgm": """
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="n"} 90
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",Hostname="n"} 30
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-1",Hostname="n"} 0.5
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",Hostname="n"} 2
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",Hostname="n"} 140737488355328
""",
}
READ = {
    "triton": {
        "requests_waiting": 5,
        "gpu_busy_ratio": pytest.approx(0.6),
        "gpu_memory_used_bytes": 1000,
        "gpu_power_watts": 250.5,
    },
    "vllm": {"requests_running": 4, "requests_waiting": 2, "cache_used_ratio": 0.25},
    "sglang": {"requests_running": 5, "requests_waiting": 1, "cache_used_ratio": 0.28},
    "llama.cpp": {"requests_running": 2, "requests_waiting": 7},
    "tgi": {"requests_running": 6, "requests_waiting": 9},
    "dcgm": {
        "gpu_busy_ratio": pytest.approx(0.6),
        "gpu_active_ratio": 0.5,
        "gpu_memory_used_bytes": 2 * 2**20,
    },
}
TOTALS = {
    "triton": {"requests_served_rate"},
    "tgi": {"requests_served_rate", "tokens_out_rate"},
    "dcgm": set(),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_reads_its_exporter(preset):
    read, unknown = {}, set()
    for source in PRESETS[preset]:
        meter = SignalMeter(source)
        meter.take(read_exposition(TEXTS[preset], PLAIN, source.metrics), now=10.0, wall_time=1e9)
        if meter.reading.is_fresh(10.0, 0.0):
            read[source.name] = meter.reading.value
        elif not meter.reading.fault:
            unknown.add(source.name)
    assert read == READ[preset]
    assert unknown == TOTALS.get(preset, {"tokens_in_rate", "tokens_out_rate"})  # a total needs a second look


def test_a_value_that_the_exporter_marks_as_unknown_is_none():
    power = next(source for source in PRESETS["dcgm"] if source.name == "gpu_power_watts")
    meter = SignalMeter(power)
    meter.take(read_exposition(TEXTS["dcgm"], PLAIN, power.metrics), now=0.0, wall_time=1e9)
    assert "no series with a value" in meter.reading.fault


def test_openmetrics_is_read_with_its_own_names_for_totals():
    text = "# TYPE a counter\na_total 5 1700000000.5\n# TYPE b gauge\nb 2\n# EOF\n"
    found = read_exposition(text, OPENMETRICS, ["a_total", "b"])
    assert (found["a_total"].declared, found["a_total"].series[0].value) == ("counter", 5)
    assert found["a_total"].series[0].time == 1700000000.5
    assert found["b"].declared == "gauge"


def test_openmetrics_that_was_cut_short_is_found_out():
    with pytest.raises(ValueError, match="EOF"):
        read_exposition("# TYPE b gauge\nb 2\n", OPENMETRICS, ["b"])


def test_a_histogram_of_openmetrics_is_read_by_its_sum():
    text = (
        '# TYPE h histogram\nh_bucket{le="1.0"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4\nh_count 3\n'
        "# TYPE other gauge\nother 1\n# EOF\n"
    )
    found = read_exposition(text, OPENMETRICS, ["h_sum"])
    assert (found["h_sum"].declared, found["h_sum"].series[0].value) == ("counter", 4)


def test_what_a_histogram_counts_is_known_as_a_counter():
    found = read_exposition(TEXTS["tgi"], PLAIN, ["tgi_request_generated_tokens_sum"])
    assert found["tgi_request_generated_tokens_sum"].declared == "counter"


def test_broken_lines_of_others_are_not_read():
    text = "# TYPE good gauge\ngood 1\nbad{{{ not a line\n"
    assert read_exposition(text, PLAIN, ["good"])["good"].series[0].value == 1


@pytest.mark.parametrize("text", ["good{a=", 'good{a="1"} x'])
def test_broken_lines_of_what_is_wanted_are_an_error(text):
    with pytest.raises((ValueError, KeyError, IndexError)):
        read_exposition(text, PLAIN, ["good"])


def test_names_in_quotes_are_read():
    text = '# TYPE "my.metric" gauge\n{"my.metric",a="1"} 3\n'
    assert read_exposition(text, PLAIN, ["my.metric"])["my.metric"].series[0].value == 3


def test_a_flood_of_series_is_refused():
    text = "\n".join(f'm{{i="{number}"}} 1' for number in range(SERIES_MAX + 1))
    with pytest.raises(ValueError, match="more than 10000 series"):
        read_exposition(text, PLAIN, ["m"])


def test_megabytes_that_nobody_wants_cost_little():
    text = "\n".join(
        f'other_metric{{i="{number}",name="something long"}} {number}' for number in range(60_000)
    )
    began = time.process_time()
    found = read_exposition(f"wanted 1\n{text}\n", PLAIN, ["wanted"])
    assert found["wanted"].series[0].value == 1
    assert time.process_time() - began < 1.0  # the parser itself would take several seconds
