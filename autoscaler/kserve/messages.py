"""The messages of KServe v2 over gRPC that are read and written here, by names and numbers of their fields.

That is all of a protocol that is on the wire; the protobuf library does the rest.

Source: `grpc_predict_v2.proto` of KServe, with the parameter kinds that Triton added.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "string": _FIELD.TYPE_STRING,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
    "float": _FIELD.TYPE_FLOAT,
    "double": _FIELD.TYPE_DOUBLE,
    "bytes": _FIELD.TYPE_BYTES,
}
_PACKAGE = "autoscaler.kserve"
"""Not the protocol's own, which another library here may have registered too; it is not on the wire."""

_CHOICE = "parameter_choice"

_MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {
    # field: number, kind or message, whether there may be several
    "InferParameter": {
        "bool_param": (1, "bool", False),
        "int64_param": (2, "int64", False),
        "string_param": (3, "string", False),
        "double_param": (4, "double", False),
        "uint64_param": (5, "uint64", False),
    },
    "Parameter": {"key": (1, "string", False), "value": (2, "InferParameter", False)},
    "InferTensorContents": {
        "bool_contents": (1, "bool", True),
        "int_contents": (2, "int32", True),
        "int64_contents": (3, "int64", True),
        "uint_contents": (4, "uint32", True),
        "uint64_contents": (5, "uint64", True),
        "fp32_contents": (6, "float", True),
        "fp64_contents": (7, "double", True),
        "bytes_contents": (8, "bytes", True),
    },
    "InferTensor": {
        "name": (1, "string", False),
        "datatype": (2, "string", False),
        "shape": (3, "int64", True),
        "parameters": (4, "Parameter", True),
        "contents": (5, "InferTensorContents", False),
    },
    "InferRequestedOutputTensor": {"name": (1, "string", False), "parameters": (2, "Parameter", True)},
    "ModelInferRequest": {
        "model_name": (1, "string", False),
        "model_version": (2, "string", False),
        "id": (3, "string", False),
        "parameters": (4, "Parameter", True),
        "inputs": (5, "InferTensor", True),
        "outputs": (6, "InferRequestedOutputTensor", True),
        "raw_input_contents": (7, "bytes", True),
    },
    "ModelInferResponse": {
        "model_name": (1, "string", False),
        "model_version": (2, "string", False),
        "id": (3, "string", False),
        "parameters": (4, "Parameter", True),
        "outputs": (5, "InferTensor", True),
        "raw_output_contents": (6, "bytes", True),
    },
}
"""A map of parameters is, on the wire, a row of messages of key and value; as such it is read here."""


def _add_field(message: Any, name: str, number: int, kind: str, is_repeated: bool) -> None:
    field = message.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    if message.name == "InferParameter":
        field.oneof_index = 0


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="autoscaler/kserve.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "InferParameter":
            message.oneof_decl.add(name=_CHOICE)
        for field, (number, kind, is_repeated) in fields.items():
            _add_field(message, field, number, kind, is_repeated)
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


ModelInferRequest = _class("ModelInferRequest")
ModelInferResponse = _class("ModelInferResponse")


def value_of(parameter: Any) -> bool | int | float | str | None:
    """Return the value of one parameter; None if it has none of a kind that is known."""
    choice = parameter.value.WhichOneof(_CHOICE)
    return None if choice is None else getattr(parameter.value, choice)


def add_parameter(parameters: Any, name: str, value: bool | int | float | str) -> None:
    """Append a parameter to those of a message."""
    added = parameters.add(key=name)
    match value:
        case bool():
            added.value.bool_param = value
        case int():
            added.value.int64_param = value
        case float():
            added.value.double_param = value
        case _:
            added.value.string_param = value
