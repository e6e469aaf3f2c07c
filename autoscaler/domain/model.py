"""What a model server says of a model: what it takes, how it is run, and how long it took."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """One input or output of a model."""

    name: str
    datatype: str
    """As in KServe v2: FP32, INT64, BYTES, …"""
    shape: tuple[int, ...]
    """Without the batch dimension; -1 where any size goes."""
    is_optional: bool = False
    """Whether a request may leave it out."""
    is_ragged: bool = False
    """Whether requests of other shapes may stand beside each other in one batch."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """One model of a server."""

    name: str
    version: str
    """The one that was asked for; empty for the one that the server chooses."""
    batch_size_max: int
    """Rows that one request may have, and one batch [1]; 0 if its tensors have no batch dimension, or the
    server does not tell."""
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    instances: int = 0
    """Copies that run at the same time on one server [1]; 0 if the server does not tell (an ensemble has none
    of its own)."""
    is_batched_by_server: bool = False
    """Whether the server merges requests itself (Triton's dynamic batching)."""
    batch_sizes_preferred: tuple[int, ...] = ()
    """Sizes at which it does so without waiting for more, rising [rows]; empty: only the largest."""
    batch_delay: float = 0.0
    """How long it waits for more [s]."""
    queue_max: int = 0
    """Requests that may wait in the server before it refuses more [1]; 0: no bound is known."""
    has_sequences: bool = False
    """Whether requests belong to sequences, each of which must stay on one server, in order."""
    is_decoupled: bool = False
    """Whether a request may have any number of answers; only a stream can carry them."""


@dataclass(frozen=True, slots=True)
class SizeTime:
    """How long executions of one batch size took in a server, since it was started."""

    size: int
    """Rows [1]."""
    count: int
    """Executions [1]."""
    seconds: float
    """Of one execution, in the mean: its copies in, its computation, its copies out [s]."""
