"""The messages of KServe v2 and Triton that describe models, by the names and numbers of their fields.

Over gRPC they are sent in binary, over HTTP as JSON of the same messages; here is one form for both. Fields
that nothing here reads are left out: a protobuf message keeps them unread, and JSON is told to.

Source: `grpc_service.proto` and `model_config.proto`, package `inference`.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "inference"
SERVICE = f"/{_PACKAGE}.GRPCInferenceService/"

_FIELD = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "string": _FIELD.TYPE_STRING,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
}

_ENUMS = {
    "DataType": (
        "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 "
        "TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16"
    ),
    "GroupKind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
}
"""Values by name, numbered from 0."""

_MESSAGES: dict[str, str] = {
    # field: number, kind, and a star if there may be several
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


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number, json_name=name)
    field.label = _FIELD.LABEL_REPEATED if kind.endswith("*") else _FIELD.LABEL_OPTIONAL
    kind = kind.rstrip("*")
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type = _FIELD.TYPE_ENUM if kind in _ENUMS else _FIELD.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="described.proto", package=_PACKAGE, syntax="proto3")
    for enum_name, values in _ENUMS.items():
        enum = file.enum_type.add(name=enum_name)
        for number, value in enumerate(values.split()):
            enum.value.add(name=value, number=number)
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field in filter(None, fields.split(", ")):
            field_name, field_number, kind = field.split()
            _add_field(message, field_name, int(field_number), kind)
    return file


# A pool of its own: another library of the same process may know the same messages.
_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def message(name: str) -> Any:
    """Return the class of a message."""
    return _classes[name]


_classes = {
    name: message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    for name in _MESSAGES
}
