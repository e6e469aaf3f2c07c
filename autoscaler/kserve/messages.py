"""The messages of KServe v2 over gRPC that are read and written here, by names and numbers of their fields.

Source: `grpc_predict_v2.proto` of KServe, with the parameter kinds that Triton added.
"""

from typing import Any

from autoscaler.wire_messages import message_classes

_CHOICE = "parameter_choice"

_MESSAGES = {
    "InferParameter": (
        "bool_param 1 bool, int64_param 2 int64, string_param 3 string, double_param 4 double, "
        "uint64_param 5 uint64"
    ),
    "Parameter": "key 1 string, value 2 InferParameter",
    "InferTensorContents": (
        "bool_contents 1 bool*, int_contents 2 int32*, int64_contents 3 int64*, uint_contents 4 uint32*, "
        "uint64_contents 5 uint64*, fp32_contents 6 float*, fp64_contents 7 double*, bytes_contents 8 bytes*"
    ),
    "InferTensor": (
        "name 1 string, datatype 2 string, shape 3 int64*, parameters 4 Parameter*, "
        "contents 5 InferTensorContents"
    ),
    "InferRequestedOutputTensor": "name 1 string, parameters 2 Parameter*",
    "ModelInferRequest": (
        "model_name 1 string, model_version 2 string, id 3 string, parameters 4 Parameter*, "
        "inputs 5 InferTensor*, outputs 6 InferRequestedOutputTensor*, raw_input_contents 7 bytes*"
    ),
    "ModelInferResponse": (
        "model_name 1 string, model_version 2 string, id 3 string, parameters 4 Parameter*, "
        "outputs 5 InferTensor*, raw_output_contents 6 bytes*"
    ),
}
"""A map of parameters is, on the wire, a row of messages of key and value; as such it is read here."""

_classes = message_classes("kserve", _MESSAGES, choices={"InferParameter": _CHOICE})

ModelInferRequest = _classes["ModelInferRequest"]
ModelInferResponse = _classes["ModelInferResponse"]


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
