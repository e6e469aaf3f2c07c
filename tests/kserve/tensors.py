"""Tensors of every datatype, and requests for inference made from them by Triton's own client library."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from tritonclient import grpc as of_grpc
from tritonclient import http as of_http
from tritonclient.utils import np_to_triton_dtype

KINDS = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "O"]


@dataclass
class Item:
    """What one client asks, and in which form."""

    values: np.ndarray
    form: str
    id: str = ""


def arrays(kind: str, rows: int, width: int) -> st.SearchStrategy[np.ndarray]:
    if kind == "O":
        values: st.SearchStrategy = st.text(max_size=5).map(str.encode)
    elif kind == "?":
        values = st.booleans()
    elif kind.startswith("f"):
        values = st.floats(width={"f2": 16, "f4": 32, "f8": 64}[kind], allow_nan=False, allow_infinity=False)
    else:
        info = np.iinfo(kind)
        values = st.integers(int(info.min), int(info.max))
    flat = st.lists(values, min_size=rows * width, max_size=rows * width)
    return flat.map(lambda drawn: np.array(drawn, dtype=kind).reshape(rows, width))


@st.composite
def batches(draw: st.DrawFn) -> list[Item]:
    """Items that share a bucket: one datatype and width, any rows and forms."""
    kind, width = draw(st.sampled_from(KINDS)), draw(st.integers(1, 3))
    forms = ["binary", "grpc"] if kind == "f2" else ["binary", "grpc", "json"]
    items = []
    for i in range(draw(st.integers(1, 4))):
        values = draw(arrays(kind, draw(st.integers(1, 3)), width))
        items.append(Item(values, draw(st.sampled_from(forms)), draw(st.sampled_from(["", f"id-{i}"]))))
    return items


def http_body(item: Item, outputs: list[str] | None = None) -> tuple[bytes, int | None]:
    """Body, and the length of its JSON, as the client library makes them."""
    is_binary = item.form == "binary"
    one = of_http.InferInput("x", item.values.shape, np_to_triton_dtype(item.values.dtype))
    one.set_data_from_numpy(item.values, binary_data=is_binary)
    asked = [of_http.InferRequestedOutput(name, binary_data=is_binary) for name in outputs or []]
    return of_http.InferenceServerClient.generate_request_body([one], asked or None, item.id)


def grpc_message(item: Item) -> bytes:
    one = of_grpc.InferInput("x", item.values.shape, np_to_triton_dtype(item.values.dtype))
    one.set_data_from_numpy(item.values)
    request = of_grpc.service_pb2.ModelInferRequest(model_name="m", id=item.id)
    request.inputs.append(one._get_tensor())
    request.raw_input_contents.append(one._get_content())
    return request.SerializeToString()
