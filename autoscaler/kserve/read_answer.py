"""Reads the answer of a server to a merged request: JSON, with its tensors as bytes behind or as numbers."""

from typing import Any

import msgspec

from autoscaler.kserve.infer import InferAnswer, Scalar
from autoscaler.kserve.layout import Data
from autoscaler.kserve.read_http import UNREADABLE, data_of_json
from autoscaler.kserve.tensor import NotMergeable, Tensor


class _Output(msgspec.Struct):
    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] = {}
    data: msgspec.Raw = msgspec.Raw()


class _Answer(msgspec.Struct):
    outputs: list[_Output]
    model_name: str = ""
    model_version: str = ""
    parameters: dict[str, Scalar] = {}


_DECODER = msgspec.json.Decoder(_Answer)


def read_answer(body: bytes, json_length: int | None) -> InferAnswer:
    """Return the answer in `body`, of which `json_length` bytes are JSON (None: all).

    Raises
    ------
    NotMergeable
        If it is none that can be split.
    """
    view = memoryview(body)
    text = view if json_length is None else view[:json_length]
    try:
        read = _DECODER.decode(text)
    except UNREADABLE as bad:
        raise NotMergeable("the answer is none of the protocol") from bad
    tensors, at = [], len(text)
    for output in read.outputs:
        size = output.parameters.get("binary_data_size")
        if size is None:
            data: Data = data_of_json(output.name, output.datatype, output.shape, output.data)
        elif isinstance(size, int) and 0 <= size <= len(view) - at:
            data = view[at : at + size]
            at += size
        else:
            raise NotMergeable("the answer is shorter than it says")
        tensors.append(Tensor(output.name, output.datatype, tuple(output.shape), data))
    return InferAnswer(read.model_name, read.model_version, tuple(tensors), read.parameters)
