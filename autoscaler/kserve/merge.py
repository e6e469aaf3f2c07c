"""Several requests of one bucket become one, in the binary form of HTTP; its answer becomes theirs.

All outputs are asked for as bytes, whatever the form that each client wants: no number is written as text
and read again on the way. Of outputs the union is asked for, and each client is given its own.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from autoscaler.kserve.infer import InferAnswer, InferRequest, OutputAsked
from autoscaler.kserve.tensor import IgnoresRows, NotMergeable, Tensor


def merge(requests: Sequence[InferRequest]) -> tuple[bytes, int]:
    """Return the body of one request for all, and how many of its bytes are JSON."""
    first = requests[0]
    rows = sum(request.rows for request in requests)
    parts: list[Any] = [b""]
    inputs = []
    for i, like in enumerate(first.inputs):
        pieces = [request.inputs[i].data for request in requests]
        parts += pieces
        inputs.append(
            {
                "name": like.name,
                "shape": (rows, *like.shape[1:]),
                "datatype": like.datatype,
                "parameters": {"binary_data_size": sum(map(len, pieces))},
            }
        )
    head: dict[str, Any] = {"parameters": {**first.parameters, "binary_data_output": True}, "inputs": inputs}
    if outputs := _union(requests):
        head["outputs"] = [_asked(output) for output in outputs]
    parts[0] = msgspec.json.encode(head)
    return b"".join(parts), len(parts[0])


def split(answer: InferAnswer, requests: Sequence[InferRequest]) -> list[InferAnswer]:
    """Return the answer to each of the requests that were merged.

    Raises
    ------
    IgnoresRows
        If the model does not answer row by row.
    NotMergeable
        If an output that was asked for is missing, or one that is there cannot be cut.
    """
    rows = [request.rows for request in requests]
    total = sum(rows)
    pieces: list[list[Tensor]] = [[] for _ in requests]
    for output in answer.outputs:
        output.check()
        if output.shape[0] != total:
            raise IgnoresRows(
                f"the model answered {output.shape[0]} rows of {output.name!r} to {total} of its inputs"
            )
        for i, piece in enumerate(output.cut(rows)):
            pieces[i].append(piece)
    return [
        InferAnswer(answer.model, answer.version, _own(request, of), answer.parameters)
        for request, of in zip(requests, pieces, strict=True)
    ]


def _own(request: InferRequest, outputs: list[Tensor]) -> tuple[Tensor, ...]:
    if not request.outputs:
        return tuple(outputs)
    asked = {output.name for output in request.outputs}
    own = tuple(tensor for tensor in outputs if tensor.name in asked)  # in the model's order, as servers do
    if len(own) < len(asked):
        raise NotMergeable(f"the model did not answer {', '.join(asked - {tensor.name for tensor in own})}")
    return own


def _union(requests: Sequence[InferRequest]) -> list[OutputAsked]:
    """Return what all together want; nothing if one of them wants all that there is and none a ranking."""
    named: dict[str, OutputAsked] = {}
    for request in requests:
        if not request.outputs:
            return []
        for output in request.outputs:
            named.setdefault(output.name, output)
    return list(named.values())


def _asked(output: OutputAsked) -> dict[str, Any]:
    if output.classification:
        parameters = {"classification": output.classification, "binary_data": True}
    else:
        parameters = {"binary_data": True}
    return {"name": output.name, "parameters": parameters}
