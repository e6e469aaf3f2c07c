"""Writes one client's answer as HTTP has it: each output as that client asked, as numbers or as bytes."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from autoscaler.kserve.infer import InferAnswer, InferRequest
from autoscaler.kserve.layout import BYTES, FORMATS, all_finite, from_wire
from autoscaler.kserve.read_http import HEADER_LENGTH
from autoscaler.kserve.tensor import Tensor

_ENCODER = msgspec.json.Encoder()


def all_have_form(answer: InferAnswer, requests: Iterable[InferRequest]) -> bool:
    """Whether every output, and so every part of it, can be written in JSON; or none is wanted so."""
    return not any(request.wants_json for request in requests) or all(map(_has_form, answer.outputs))


def has_form(answer: InferAnswer, request: InferRequest) -> bool:
    """Whether every output that is wanted as numbers or text can be written so in JSON."""
    binary = _binary(request)
    return all(binary.get(tensor.name, request.all_binary) or _has_form(tensor) for tensor in answer.outputs)


def write_http(answer: InferAnswer, request: InferRequest) -> tuple[Mapping[str, str], bytes]:
    """Return the header fields that say how to read the body, and the body. It must have that form."""
    binary = _binary(request)
    outputs: list[dict[str, Any]] = []
    parts: list[Any] = [b""]
    for tensor in answer.outputs:
        output: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}
        if binary.get(tensor.name, request.all_binary):
            output["parameters"] = {"binary_data_size": len(tensor.data)}
            parts.append(tensor.data)
        else:
            output["data"] = _numbers(tensor)
        outputs.append(output)
    head: dict[str, Any] = {"id": request.id} if request.id else {}
    head |= {"model_name": answer.model, "model_version": answer.version}
    if answer.parameters:
        head["parameters"] = answer.parameters
    parts[0] = _ENCODER.encode(head | {"outputs": outputs})
    if len(parts) == 1:
        return {"Content-Type": "application/json"}, parts[0]
    fields = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(parts[0]))}
    return fields, b"".join(parts)


def _binary(request: InferRequest) -> dict[str, bool]:
    """Return which of the outputs that were named are wanted as bytes."""
    return {output.name: output.is_binary for output in request.outputs}


def _has_form(tensor: Tensor) -> bool:
    if tensor.datatype == BYTES:
        return all(_is_text(value) for value in tensor.strings())
    if tensor.datatype in ("FP32", "FP64"):
        return all_finite(tensor.datatype, tensor.data)
    return tensor.datatype in FORMATS and tensor.datatype != "FP16"


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbers(tensor: Tensor) -> Any:
    if tensor.datatype == BYTES:
        return [value.decode() for value in tensor.strings()]
    return from_wire(tensor.datatype, tensor.data)
