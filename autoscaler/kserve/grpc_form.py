"""Reads a request for inference from its gRPC message, and writes an answer as one.

Tensors come as raw bytes, all of them, or as typed values, all of them; answers give raw bytes.
"""

from typing import Any

from google.protobuf.message import DecodeError

from autoscaler.kserve.infer import InferAnswer, InferRequest, OutputAsked, Scalar
from autoscaler.kserve.layout import BYTES, strings_to_wire, to_wire
from autoscaler.kserve.messages import ModelInferRequest, ModelInferResponse, add_parameter, value_of
from autoscaler.kserve.tensor import NotMergeable, Tensor

_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    BYTES: "bytes_contents",
}
"""The field that holds the typed values of a datatype."""


def read_grpc(message: bytes) -> InferRequest:
    """Return the request in a `ModelInferRequest`. Raises NotMergeable if it must go alone."""
    try:
        read = ModelInferRequest.FromString(message)
    except DecodeError as bad:
        raise NotMergeable("the message is none of the protocol") from bad
    request = InferRequest(
        model=read.model_name,
        version=read.model_version,
        inputs=tuple(sorted(_tensors(read), key=lambda tensor: tensor.name)),
        outputs=tuple(_output(output) for output in read.outputs),
        all_binary=True,
        parameters=_parameters(read.parameters),
        id=read.id,
    )
    request.check()
    return request


def write_grpc(answer: InferAnswer, request: InferRequest) -> bytes:
    """Return the answer as a `ModelInferResponse`."""
    written = ModelInferResponse(model_name=answer.model, model_version=answer.version, id=request.id)
    for name, value in answer.parameters.items():
        add_parameter(written.parameters, name, value)
    for tensor in answer.outputs:
        written.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        written.raw_output_contents.append(bytes(tensor.data))
    return bytes(written.SerializeToString())


def _tensors(read: Any) -> list[Tensor]:
    raw = list(read.raw_input_contents)
    if raw and len(raw) != len(read.inputs):
        raise NotMergeable("it has raw contents for some of its inputs only")
    tensors = []
    for i, one in enumerate(read.inputs):
        if one.parameters:
            raise NotMergeable(f"the input {one.name!r} has parameters")
        if raw and one.HasField("contents"):
            raise NotMergeable(f"the input {one.name!r} has contents of both kinds")
        tensors.append(Tensor(one.name, one.datatype, tuple(one.shape), raw[i] if raw else _typed(one)))
    return tensors


def _typed(one: Any) -> bytes:
    field = _CONTENTS.get(one.datatype)
    if field is None or [set_.name for set_, _ in one.contents.ListFields()] != [field]:
        raise NotMergeable(f"the input {one.name!r} has no contents of its datatype, or others too")
    values = getattr(one.contents, field)
    if one.datatype == BYTES:
        return strings_to_wire(values)
    try:
        return to_wire(one.datatype, values)
    except OverflowError as bad:
        raise NotMergeable(f"the input {one.name!r} holds what does not fit its datatype") from bad


def _output(output: Any) -> OutputAsked:
    parameters = _parameters(output.parameters)
    parameters.pop("binary_data", None)  # of the other form; over gRPC a server does not look at it
    classes = parameters.pop("classification", 0)
    if parameters or type(classes) is not int:
        raise NotMergeable(f"the output {output.name!r} has parameters that are not understood here")
    return OutputAsked(output.name, is_binary=True, classification=classes)


def _parameters(read: Any) -> dict[str, Scalar]:
    parameters: dict[str, Scalar] = {}
    for one in read:
        value = value_of(one)
        if value is None or one.key in parameters:
            raise NotMergeable(f"the parameter {one.key!r} has no value that is known, or several")
        parameters[one.key] = value
    return parameters
