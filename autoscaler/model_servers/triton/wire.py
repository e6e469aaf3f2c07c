"""The messages as gRPC carries them, by the names and numbers of their fields.

Source: as `messages`, which are read from these, and say what they mean.
"""

from typing import Any

import msgspec
from google.protobuf import json_format

from autoscaler.model_servers.triton.messages import DATATYPES, Message
from autoscaler.model_servers.triton.transport import Told
from autoscaler.wire_messages import message_classes

_PACKAGE = "inference"
SERVICE = f"/{_PACKAGE}.GRPCInferenceService/"

MESSAGES = {
    "ServerReadyRequest": "",
    "ServerReadyResponse": "ready 1 bool",
    "ModelReadyRequest": "name 1 string, version 2 string",
    "ModelReadyResponse": "ready 1 bool",
    "ModelMetadataRequest": "name 1 string, version 2 string",
    "ModelMetadataResponse": "name 1 string, inputs 4 TensorMetadata*, outputs 5 TensorMetadata*",
    "TensorMetadata": "name 1 string, datatype 2 string, shape 3 int64*",
    "ModelConfigRequest": "name 1 string, version 2 string",
    "ModelConfigResponse": "config 1 ModelConfig",
    "ModelConfig": (
        "name 1 string, max_batch_size 4 int32, input 5 ModelInput*, output 6 ModelOutput*, "
        "instance_group 7 ModelInstanceGroup*, dynamic_batching 11 ModelDynamicBatching, "
        "sequence_batching 13 Empty, ensemble_scheduling 15 Empty, "
        "model_transaction_policy 19 ModelTransactionPolicy"
    ),
    "ModelInput": (
        "name 1 string, data_type 2 DataType, dims 4 int64*, allow_ragged_batch 7 bool, optional 8 bool"
    ),
    "ModelOutput": "name 1 string, data_type 2 DataType, dims 3 int64*",
    "ModelInstanceGroup": "count 2 int32, gpus 3 int32*, passive 7 bool",
    "ModelDynamicBatching": (
        "preferred_batch_size 1 int32*, max_queue_delay_microseconds 2 uint64, "
        "default_queue_policy 6 ModelQueuePolicy"
    ),
    "ModelQueuePolicy": "max_queue_size 4 uint32",
    "ModelTransactionPolicy": "decoupled 1 bool",
    "Empty": "",
    "ModelStatisticsRequest": "name 1 string, version 2 string",
    "ModelStatisticsResponse": "model_stats 1 ModelStatistics*",
    "ModelStatistics": "batch_stats 7 InferBatchStatistics*",
    "InferBatchStatistics": (
        "batch_size 1 uint64, compute_input 2 StatisticDuration, compute_infer 3 StatisticDuration, "
        "compute_output 4 StatisticDuration"
    ),
    "StatisticDuration": "count 1 uint64, ns 2 uint64",
    "RepositoryIndexRequest": "",
    "RepositoryIndexResponse": "models 1 ModelIndex*",
    "ModelIndex": "name 1 string, state 3 string",
    "RepositoryModelLoadRequest": "model_name 2 string",
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": "model_name 2 string",
    "RepositoryModelUnloadResponse": "",
}

_classes = message_classes(_PACKAGE, MESSAGES, {"DataType": DATATYPES})


def method_of(question: Message) -> str:
    """Return the path that a question is asked at."""
    return SERVICE + _call(question)


def written(question: Message) -> bytes:
    """Return the question as it is sent."""
    message = _classes[f"{_call(question)}Request"](**msgspec.structs.asdict(question))
    return bytes(message.SerializeToString())


def read(message: bytes, question: Message, answer: type[Told]) -> Told:
    """Return the answer that came to a question. Raises DecodeError if it is none."""
    came: Any = _classes[f"{_call(question)}Response"].FromString(message)
    # Numbers of 64 bits are text in JSON, hence not strict.
    return msgspec.convert(json_format.MessageToDict(came), answer, strict=False)


def _call(question: Message) -> str:
    return type(question).__name__.removesuffix("Request")
