"""The signals of the exporters people run, by the names that their documentation gives.

Servers rename metrics between versions; each signal lists the names it has had. `DCGM_FI_DEV_GPU_UTIL` and
its like are shares of *time* with any kernel running: see `gpu_reading` for why nothing is scaled by them.
"""

from collections.abc import Mapping
from math import inf

from autoscaler.telemetry.scrape.source import AddUp, Follows, Kind, SignalSource, Unit

RUNNING, WAITING, SERVED = "requests_running", "requests_waiting", "requests_served_rate"
CACHE, TOKENS_IN, TOKENS_OUT = "cache_used_ratio", "tokens_in_rate", "tokens_out_rate"
GPU_BUSY, GPU_ACTIVE = "gpu_busy_ratio", "gpu_active_ratio"
GPU_MEMORY, GPU_POWER = "gpu_memory_used_bytes", "gpu_power_watts"

_DCGM_BLANK = 140_737_488_355_328.0
"""DCGM writes this, or more, for a value that a card does not have."""


def _level(name: str, *metrics: str) -> SignalSource:
    return SignalSource(name, metrics)


def _waiting(*metrics: str) -> SignalSource:
    """Return the queue inside a server: empty, whatever the load, while it has a slot for all it is sent."""
    return SignalSource(WAITING, metrics, follows=Follows.NOTHING)


def _rate(name: str, *metrics: str) -> SignalSource:
    return SignalSource(name, metrics, Kind.COUNTER)


def _share(name: str, *metrics: str, unit: Unit = Unit.FRACTION, blank_from: float = inf) -> SignalSource:
    return SignalSource(
        name, metrics, unit=unit, add_up=AddUp.MEAN, follows=Follows.OCCUPANCY, blank_from=blank_from
    )


PRESETS: Mapping[str, tuple[SignalSource, ...]] = {
    "triton": (
        _waiting("nv_inference_pending_request_count"),
        _rate(SERVED, "nv_inference_request_success"),
        _share(GPU_BUSY, "nv_gpu_utilization"),
        SignalSource(GPU_MEMORY, ("nv_gpu_memory_used_bytes",), follows=Follows.NOTHING),
        SignalSource(GPU_POWER, ("nv_gpu_power_usage",), follows=Follows.NOTHING),
    ),
    "vllm": (
        _level(RUNNING, "vllm:num_requests_running"),
        _waiting("vllm:num_requests_waiting"),
        # A fraction, whatever its name says: 1 is full.
        _share(CACHE, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        _rate(TOKENS_IN, "vllm:prompt_tokens_total"),
        _rate(TOKENS_OUT, "vllm:generation_tokens_total"),
    ),
    "sglang": (
        _level(RUNNING, "sglang:num_running_reqs"),
        _waiting("sglang:num_queue_reqs"),
        _share(CACHE, "sglang:token_usage"),
        _rate(TOKENS_IN, "sglang:prompt_tokens_total"),
        _rate(TOKENS_OUT, "sglang:generation_tokens_total"),
    ),
    "llama.cpp": (
        _level(RUNNING, "llamacpp:requests_processing"),
        _waiting("llamacpp:requests_deferred"),
        _rate(TOKENS_IN, "llamacpp:prompt_tokens_total"),
        _rate(TOKENS_OUT, "llamacpp:tokens_predicted_total"),
    ),
    "tgi": (
        _level(RUNNING, "tgi_batch_current_size"),
        _waiting("tgi_queue_size"),
        _rate(SERVED, "tgi_request_count"),
        _rate(TOKENS_OUT, "tgi_request_generated_tokens_sum"),
    ),
    "dcgm": (
        _share(GPU_BUSY, "DCGM_FI_DEV_GPU_UTIL", unit=Unit.PERCENT, blank_from=_DCGM_BLANK),
        _share(GPU_ACTIVE, "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", blank_from=_DCGM_BLANK),
        SignalSource(
            GPU_MEMORY,
            ("DCGM_FI_DEV_FB_USED",),
            unit=Unit.MEBIBYTES,
            follows=Follows.NOTHING,
            blank_from=_DCGM_BLANK,
        ),
        SignalSource(
            GPU_POWER, ("DCGM_FI_DEV_POWER_USAGE",), follows=Follows.NOTHING, blank_from=_DCGM_BLANK
        ),
    ),
}
