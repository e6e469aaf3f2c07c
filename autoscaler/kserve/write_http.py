"""Writes one client's answer as HTTP has it: each output as that client asked, as numbers or as bytes."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from autoscaler.kserve.infer import InferAnswer, InferRequest
from autoscaler.kserve.read_http import HEADER_LENGTH
from autoscaler.kserve.tensor import BYTES, NUMPY, NotMergeable, Tensor

_ENCODER = msgspec.json.Encoder()


def write_http(answer: InferAnswer, request: InferRequest) -> tuple[Mapping[str, str], bytes]:
    """Return the header fields that say how to read the body, and the body.

    Raises
    ------
    NotMergeable
        If an output has no form in JSON, but was wanted in it: then the server has to say so itself.
    """
    binary = {output.name: output.is_binary for output in request.outputs}
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


def _numbers(tensor: Tensor) -> Any:
    if tensor.datatype == BYTES:
        try:
            return [value.decode() for value in tensor.strings()]
        except UnicodeDecodeError as bad:
            raise NotMergeable(f"{tensor.name!r} holds what is no text") from bad
    kind = NUMPY.get(tensor.datatype)
    if kind is None or tensor.datatype == "FP16":
        raise NotMergeable(f"{tensor.datatype} has no form in JSON")
    array = np.frombuffer(tensor.data, kind)
    if kind.kind == "f" and not np.isfinite(array).all():
        raise NotMergeable(f"{tensor.name!r} holds what is no number in JSON")
    return array.tolist()
