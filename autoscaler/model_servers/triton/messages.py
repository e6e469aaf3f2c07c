"""The messages of KServe v2 and Triton that describe models, as values.

Over HTTP they are JSON of this form; over gRPC `wire` knows their numbers. Fields that nothing here reads are
left out, and what a server does not say of the others is their default.

Source: `grpc_service.proto` and `model_config.proto`, package `inference`.
"""

import msgspec

DATATYPES = (
    "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 "
    "TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16"
)
"""Values of the enumeration by name, numbered from 0."""


class Message(msgspec.Struct, frozen=True):
    """A question, an answer, or a part of one."""


class Empty(Message, frozen=True):
    """What only is there, or is not; or what would be there if anything of it were read."""


class ReadyResponse(Message, frozen=True):
    """Whether a server, or one of its models, is ready."""

    ready: bool = False


class ServerReadyRequest(Message, frozen=True):
    """Is the server ready?"""


class ModelRequest(Message, frozen=True):
    """A question about a model; an empty version leaves the choice to the server."""

    name: str
    version: str = ""


class ModelReadyRequest(ModelRequest, frozen=True):
    """Is it ready?"""


class ModelMetadataRequest(ModelRequest, frozen=True):
    """What does KServe v2 tell of it?"""


class ModelConfigRequest(ModelRequest, frozen=True):
    """How is it configured?"""


class ModelStatisticsRequest(ModelRequest, frozen=True):
    """How long did it take so far?"""


class TensorMetadata(Message, frozen=True):
    """A tensor, with its whole shape."""

    name: str = ""
    datatype: str = ""
    shape: tuple[int, ...] = ()


class ModelMetadataResponse(Message, frozen=True):
    """A model, as every server of KServe v2 tells it."""

    name: str = ""
    inputs: tuple[TensorMetadata, ...] = ()
    outputs: tuple[TensorMetadata, ...] = ()


class ModelInput(Message, frozen=True):
    """An input, without the dimension that batches have."""

    name: str = ""
    data_type: str | int = ""
    dims: tuple[int, ...] = ()
    allow_ragged_batch: bool = False
    optional: bool = False


class ModelOutput(Message, frozen=True):
    """An output, without the dimension that batches have."""

    name: str = ""
    data_type: str | int = ""
    dims: tuple[int, ...] = ()


class ModelInstanceGroup(Message, frozen=True):
    """Copies of a model, on each of some GPUs."""

    count: int = 0
    gpus: tuple[int, ...] = ()
    passive: bool = False


class ModelQueuePolicy(Message, frozen=True):
    """How many may wait in the server."""

    max_queue_size: int = 0


class ModelDynamicBatching(Message, frozen=True):
    """How the server merges requests itself."""

    preferred_batch_size: tuple[int, ...] = ()
    max_queue_delay_microseconds: int = 0
    default_queue_policy: ModelQueuePolicy = ModelQueuePolicy()


class ModelTransactionPolicy(Message, frozen=True):
    """Whether a request has one answer."""

    decoupled: bool = False


class ModelConfig(Message, frozen=True):
    """A model, as Triton has it."""

    name: str = ""
    max_batch_size: int = 0
    input: tuple[ModelInput, ...] = ()
    output: tuple[ModelOutput, ...] = ()
    instance_group: tuple[ModelInstanceGroup, ...] = ()
    dynamic_batching: ModelDynamicBatching | None = None
    sequence_batching: Empty | None = None
    ensemble_scheduling: Empty | None = None
    model_transaction_policy: ModelTransactionPolicy = ModelTransactionPolicy()


class ModelConfigResponse(Message, frozen=True):
    """The configuration of a model."""

    config: ModelConfig = ModelConfig()


class StatisticDuration(Message, frozen=True):
    """How often something was done, and how long that took in all [ns]."""

    count: int = 0
    ns: int = 0


class InferBatchStatistics(Message, frozen=True):
    """Executions of one size."""

    batch_size: int = 0
    compute_input: StatisticDuration = StatisticDuration()
    compute_infer: StatisticDuration = StatisticDuration()
    compute_output: StatisticDuration = StatisticDuration()


class ModelStatistics(Message, frozen=True):
    """Executions of one version of a model."""

    batch_stats: tuple[InferBatchStatistics, ...] = ()


class ModelStatisticsResponse(Message, frozen=True):
    """Executions of all versions that are loaded."""

    model_stats: tuple[ModelStatistics, ...] = ()


class RepositoryIndexRequest(Message, frozen=True):
    """What is in the repository?"""


class ModelIndex(Message, frozen=True):
    """A version of a model, and its state."""

    name: str = ""
    state: str = ""


class RepositoryIndexResponse(Message, frozen=True):
    """All models that the server could load."""

    models: tuple[ModelIndex, ...] = ()


class RepositoryModelLoadRequest(Message, frozen=True):
    """Load a model."""

    model_name: str


class RepositoryModelUnloadRequest(Message, frozen=True):
    """Let go of a model."""

    model_name: str
