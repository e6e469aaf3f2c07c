"""Reads a request for inference from the body of an HTTP request: JSON, or JSON followed by binary tensors.

Only what is understood in full is taken: an unknown field, or a parameter that changes where tensors lie
(shared memory), makes a request that goes alone. Numbers are converted as strictly as a server does, so that
a value which does not fit is left for the server to refuse.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from autoscaler.kserve.infer import InferRequest, OutputAsked, Scalar
from autoscaler.kserve.layout import BYTES, FORMATS, Data, strings_to_wire, to_wire
from autoscaler.kserve.tensor import STRINGS_MAX, NotMergeable, Tensor, Unsound

HEADER_LENGTH = "Inference-Header-Content-Length"
"""The header field that says how many bytes of the body are JSON."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What is no JSON, none of the form that is wanted, or nested too deep."""

_EXTENSION = "Object contains unknown field"
"""How the parser's complaint begins about what may be an extension of the protocol."""

_NESTED_MAX = 6
"""Data may be nested so deep [lists]."""


class _Input(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] = {}
    data: msgspec.Raw = msgspec.Raw()


class _Output(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parameters: dict[str, Any] = {}


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    inputs: list[_Input]
    outputs: list[_Output] = []
    parameters: dict[str, Scalar] = {}
    id: str = ""


_DECODER = msgspec.json.Decoder(_Body)


def read_http(model: str, version: str, body: bytes, json_length: int | None) -> InferRequest:
    """Return the request in `body`, of which `json_length` bytes are JSON (None: all).

    Raises
    ------
    NotMergeable
        If it must go alone.
    """
    view = memoryview(body)
    if json_length is not None and not 0 < json_length <= len(view):
        raise NotMergeable("its body is one raw tensor, or its JSON is longer than it")
    text = view if json_length is None else view[:json_length]
    try:
        read = _DECODER.decode(text)
    except UNREADABLE as bad:
        if str(bad).startswith(_EXTENSION):
            raise NotMergeable("it has a field that is not known here") from bad
        raise Unsound("its JSON is none that is understood here") from bad
    parameters = read.parameters
    all_binary = parameters.pop("binary_data_output", False)
    if not isinstance(all_binary, bool):
        raise NotMergeable("binary_data_output is neither true nor false")
    request = InferRequest(
        model=model,
        version=version,
        inputs=tuple(sorted(_tensors(read.inputs, view[len(text) :]), key=lambda tensor: tensor.name)),
        outputs=tuple(_output(output, all_binary=all_binary) for output in read.outputs),
        all_binary=all_binary,
        parameters=parameters,
        id=read.id,
    )
    request.check()
    return request


def _tensors(inputs: list[_Input], binary: memoryview) -> list[Tensor]:
    tensors, at = [], 0
    for one in inputs:
        size = one.parameters.pop("binary_data_size", None)
        if one.parameters:
            raise NotMergeable(f"the input {one.name!r} has parameters")
        if size is None:
            data: Data = data_of_json(one.name, one.datatype, one.shape, one.data)
        elif isinstance(size, int) and 0 <= size <= len(binary) - at:
            data = binary[at : at + size]
            at += size
        else:
            raise NotMergeable(f"the size of {one.name!r} is none, or beyond the end of the body")
        tensors.append(Tensor(one.name, one.datatype, tuple(one.shape), data))
    if at != len(binary):
        raise NotMergeable("the body is longer than its tensors")
    return tensors


def _output(output: _Output, *, all_binary: bool) -> OutputAsked:
    is_binary = output.parameters.pop("binary_data", all_binary)
    classes = output.parameters.pop("classification", 0)
    if output.parameters or not isinstance(is_binary, bool) or type(classes) is not int:
        raise NotMergeable(f"the output {output.name!r} has parameters that are not understood here")
    return OutputAsked(output.name, is_binary, classes)


def data_of_json(name: str, datatype: str, shape: list[int], text: msgspec.Raw) -> bytes:
    """Return the values of a JSON list, nested or not, in the layout of the wire. Raises NotMergeable."""
    kind = _KINDS.get(datatype)
    if kind is None:
        raise NotMergeable(f"{datatype} has no form in JSON")
    values = _decode(name, text, kind)
    if datatype == BYTES:
        return _strings(name, shape, values)
    try:
        flat, nested = _flat(values)
        data = to_wire(datatype, flat)
    except (_Ragged, OverflowError) as bad:
        raise Unsound(f"the data of {name!r} does not fit its datatype, or is ragged") from bad
    if len(nested) > 1 and nested != shape:
        raise NotMergeable(f"the data of {name!r} is nested otherwise than its shape")
    return data


_KINDS: dict[str, type] = {
    name: bool if code == "?" else float if code in "fd" else int
    for name, code in FORMATS.items()
    if name != "FP16"
} | {BYTES: str}


def _nested(kind: type) -> list[msgspec.json.Decoder[Any]]:
    decoders, nested = [], kind
    for _ in range(_NESTED_MAX):
        nested = list[nested]  # type: ignore[valid-type]
        decoders.append(msgspec.json.Decoder(nested))
    return decoders


_DECODERS = {kind: _nested(kind) for kind in set(_KINDS.values())}


def _decode(name: str, text: msgspec.Raw, kind: type) -> Any:
    """Decode lists of `kind`, nested as the text begins."""
    head = bytes(memoryview(text)[:64]).translate(None, b" \t\r\n")
    depth = len(head) - len(head.lstrip(b"["))
    if not 0 < depth <= _NESTED_MAX:
        raise NotMergeable(f"{name!r} has no data, or it is nested too deep")
    try:
        return _DECODERS[kind][depth - 1].decode(text)
    except UNREADABLE as bad:
        raise Unsound(f"the data of {name!r} is none of its datatype") from bad


class _Ragged(Exception):
    """Lists at one depth differ in length."""


def _flat(values: Sequence[Any]) -> tuple[Sequence[Any], list[int]]:
    """Return the values of nested lists, one after the other, and how long the lists at each depth are."""
    lengths = [len(values)]
    while values and type(values[0]) is list:
        if len(set(map(len, values))) > 1:
            raise _Ragged
        lengths.append(len(values[0]))
        values = tuple(chain.from_iterable(values))
    return values, lengths


def _strings(name: str, shape: list[int], values: Any) -> bytes:
    try:
        flat, nested = _flat(values)
        if len(flat) > STRINGS_MAX or (len(nested) > 1 and nested != shape):
            raise NotMergeable(f"{name!r} holds too many strings, or is nested otherwise than its shape")
        return strings_to_wire([value.encode() for value in flat])
    except (UnicodeEncodeError, _Ragged) as bad:
        raise NotMergeable(f"{name!r} holds what is no text, or is ragged") from bad
