"""Triton's answers about a model, as values of ours.

*Instances.* A group says how many it has on each of its GPUs, or in all on CPUs; passive ones take no
requests. An ensemble has no instances: its steps have.

*Slots.* A slot is a request that is in the server. Where the server merges requests itself, its instances are
kept full by as many as all of them take, and as many again as one batch holds, which is what waits to form
the next. More would wait there instead of in the central queue, where they can still be ordered, refused and
sent elsewhere. Without its own batcher each instance serves one at a time, and more would wait too.
"""

from autoscaler.domain.model import ModelDescription, SizeTime, TensorDescription
from autoscaler.model_servers.triton.messages import (
    DATATYPES,
    ModelConfig,
    ModelDynamicBatching,
    ModelMetadataResponse,
    ModelStatisticsResponse,
)

_MICROSECONDS = 1e-6
_NANOSECONDS = 1e-9
_TYPES = DATATYPES.split()
_CONFIG_NAMES = {"STRING": "BYTES", "INVALID": ""}  # what KServe v2 calls otherwise, or has no name for


def described(config: ModelConfig, version: str) -> ModelDescription:
    """Return the description in a `ModelConfig`."""
    batching = config.dynamic_batching or ModelDynamicBatching()
    return ModelDescription(
        name=config.name,
        version=version,
        batch_size_max=max(0, config.max_batch_size),
        inputs=tuple(
            TensorDescription(
                each.name, _datatype(each.data_type), each.dims, each.optional, each.allow_ragged_batch
            )
            for each in config.input
        ),
        outputs=tuple(
            TensorDescription(each.name, _datatype(each.data_type), each.dims) for each in config.output
        ),
        instances=_instances(config) if config.ensemble_scheduling is None else 0,
        is_batched_by_server=config.dynamic_batching is not None and config.max_batch_size > 1,
        batch_sizes_preferred=tuple(sorted(batching.preferred_batch_size)),
        batch_delay=batching.max_queue_delay_microseconds * _MICROSECONDS,
        queue_max=batching.default_queue_policy.max_queue_size,
        has_sequences=config.sequence_batching is not None,
        is_decoupled=config.model_transaction_policy.decoupled,
    )


def described_by_metadata(metadata: ModelMetadataResponse, version: str) -> ModelDescription:
    """Return what a `ModelMetadataResponse` tells: names, types and whole shapes; nothing of batches."""
    inputs, outputs = (
        tuple(TensorDescription(each.name, each.datatype, each.shape) for each in tensors)
        for tensors in (metadata.inputs, metadata.outputs)
    )
    return ModelDescription(metadata.name, version, batch_size_max=0, inputs=inputs, outputs=outputs)


def times_by_size(statistics: ModelStatisticsResponse) -> tuple[SizeTime, ...]:
    """Return the times in a `ModelStatisticsResponse`, of all versions that are loaded, by rising size."""
    sums: dict[int, tuple[int, float]] = {}
    for row in (row for model in statistics.model_stats for row in model.batch_stats):
        count, seconds = sums.get(row.batch_size, (0, 0.0))
        spent = row.compute_input.ns + row.compute_infer.ns + row.compute_output.ns
        sums[row.batch_size] = count + row.compute_infer.count, seconds + spent * _NANOSECONDS
    return tuple(
        SizeTime(size, count, seconds / count)
        for size, (count, seconds) in sorted(sums.items())
        if size and count
    )


def slots_of(model: ModelDescription, *, merged_here: bool) -> int | None:
    """Return how many requests of `model` one server shall have at a time; None if it does not tell.

    `merged_here` says that they come as batches already.
    """
    if not model.instances:
        return None
    if merged_here or not model.is_batched_by_server:
        return model.instances
    filling = model.instances * model.batch_size_max
    return filling + min(model.batch_size_max, model.queue_max or model.batch_size_max)


def _instances(config: ModelConfig) -> int:
    return sum(group.count * max(1, len(group.gpus)) for group in config.instance_group if not group.passive)


def _datatype(data_type: str | int) -> str:
    """Return what KServe v2 calls a type; empty for one that is not known here."""
    if isinstance(data_type, int):
        data_type = _TYPES[data_type] if 0 <= data_type < len(_TYPES) else ""
    name = data_type.removeprefix("TYPE_") if data_type in _TYPES else ""
    return _CONFIG_NAMES.get(name, name)
