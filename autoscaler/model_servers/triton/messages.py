"""The messages of KServe v2 and Triton that describe models, by the names and numbers of their fields.

Over gRPC they are sent in binary, over HTTP as JSON of the same messages; here is one form for both. Fields
that nothing here reads are left out: a protobuf message keeps them unread, and JSON is told to.

Source: `grpc_service.proto` and `model_config.proto`, package `inference`.
"""

from typing import Any

from autoscaler.wire_messages import message_classes

_PACKAGE = "inference"
SERVICE = f"/{_PACKAGE}.GRPCInferenceService/"

_ENUMS = {
    "DataType": (
        "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 "
        "TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16"
    ),
    "GroupKind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
}
"""Values by name, numbered from 0."""

_MESSAGES = {
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
    "ModelInstanceGroup": "count 2 int32, gpus 3 int32*, kind 4 GroupKind, passive 7 bool",
    "ModelDynamicBatching": (
        "preferred_batch_size 1 int32*, max_queue_delay_microseconds 2 uint64, "
        "default_queue_policy 6 ModelQueuePolicy"
    ),
    "ModelQueuePolicy": "max_queue_size 4 uint32",
    "ModelTransactionPolicy": "decoupled 1 bool",
    "Empty": "",
    "ModelStatisticsRequest": "name 1 string, version 2 string",
    "ModelStatisticsResponse": "model_stats 1 ModelStatistics*",
    "ModelStatistics": "name 1 string, version 2 string, batch_stats 7 InferBatchStatistics*",
    "InferBatchStatistics": (
        "batch_size 1 uint64, compute_input 2 StatisticDuration, compute_infer 3 StatisticDuration, "
        "compute_output 4 StatisticDuration"
    ),
    "StatisticDuration": "count 1 uint64, ns 2 uint64",
    "RepositoryIndexRequest": "",
    "RepositoryIndexResponse": "models 1 ModelIndex*",
    "ModelIndex": "name 1 string, version 2 string, state 3 string, reason 4 string",
    "RepositoryModelLoadRequest": "model_name 2 string",
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": "model_name 2 string",
    "RepositoryModelUnloadResponse": "",
}


def message(name: str) -> Any:
    """Return the class of a message."""
    return _classes[name]


_classes = message_classes(_PACKAGE, _MESSAGES, _ENUMS)
