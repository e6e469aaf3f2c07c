"""Models for a real Triton server, each a folder in a model repository: a configuration and a few lines of
Python for Triton's Python backend.

Every function writes one model and returns its name. `rows_max` is Triton's `max_batch_size`: 0 means that
the model knows no batch dimension, else the shape of every tensor begins with the number of rows. `more` is
appended to the configuration: `dynamic_batching {}`, `sequence_batching {}`, `instance_group […]`.

Configurations are complete, so a server may start with `--disable-auto-complete-config` and loads a model in
about 0.15 s. Each instance is a process of its own.
"""

from pathlib import Path

DATATYPES = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BF16",
    "BYTES",
)
"""Every data type of KServe v2 that Triton has. FP16 and BF16 travel in binary tensors only."""

ROWS_MAX = 8

POISON = -1.0
"""The value that `poisoned` fails on."""


def identity(
    repository: Path, datatype: str = "FP32", rows_max: int = ROWS_MAX, *, rank: int = 1, more: str = ""
) -> str:
    """INPUT → OUTPUT, the same tensor, of any shape with `rank` dimensions beside the rows.

    Named `identity_fp32`, or `identity_fp32_flat` if the model knows no rows.
    """
    name = f"identity_{datatype.lower()}" + ("" if rows_max else "_flat")
    dims = (-1,) * rank
    source = _IDENTITY.format(same=_SAME_MEMORY if datatype == "BF16" else _SAME_ARRAY)
    return write(
        repository, name, source, [("INPUT", datatype, dims)], [("OUTPUT", datatype, dims)], rows_max, more
    )


def identities(repository: Path, rows_max: int = ROWS_MAX, *, rank: int = 1, more: str = "") -> list[str]:
    """One `identity` for each data type."""
    return [identity(repository, datatype, rows_max, rank=rank, more=more) for datatype in DATATYPES]


def arithmetic(
    repository: Path, rows_max: int = ROWS_MAX, *, name: str = "arithmetic", more: str = ""
) -> str:
    """LEFT, RIGHT (FP32, width 2) → SUM (FP32, width 2), GREATER (BOOL, width 2), PRODUCT (FP32, width 1).

    PRODUCT is the scalar product of the two vectors of a row. Three outputs to choose from.
    """
    inputs = [("LEFT", "FP32", (2,)), ("RIGHT", "FP32", (2,))]
    outputs = [("SUM", "FP32", (2,)), ("GREATER", "BOOL", (2,)), ("PRODUCT", "FP32", (1,))]
    return write(repository, name, _ARITHMETIC, inputs, outputs, rows_max, more)


def upper_case(
    repository: Path, rows_max: int = ROWS_MAX, *, name: str = "upper_case", more: str = ""
) -> str:
    """TEXT (BYTES, width 1) → UPPER (BYTES, width 1), LENGTH (INT32, width 1; bytes of the text)."""
    outputs = [("UPPER", "BYTES", (1,)), ("LENGTH", "INT32", (1,))]
    return write(repository, name, _UPPER_CASE, [("TEXT", "BYTES", (1,))], outputs, rows_max, more)


def ignores_rows(
    repository: Path, rows_max: int = ROWS_MAX, *, name: str = "ignores_rows", more: str = ""
) -> str:
    """INPUT (FP32, any width) → OUTPUT (FP32, width 1), the sum of everything in ONE row, however many came.

    Says that it takes batches, and breaks them: who merges requests for it cannot split the answer.
    """
    inputs, outputs = [("INPUT", "FP32", (-1,))], [("OUTPUT", "FP32", (1,))]
    return write(repository, name, _IGNORES_ROWS, inputs, outputs, rows_max, more)


def timed(
    repository: Path,
    alpha: float,
    beta: float,
    rows_max: int = ROWS_MAX,
    *,
    name: str = "timed",
    more: str = "",
) -> str:
    """INPUT → OUTPUT (FP32, any width), the same tensor after `alpha + beta * rows` [s].

    All requests that Triton's own batcher puts into one execution are one batch, and take that time together.
    """
    inputs, outputs = [("INPUT", "FP32", (-1,))], [("OUTPUT", "FP32", (-1,))]
    source = _TIMED.format(alpha=alpha, beta=beta)
    return write(repository, name, source, inputs, outputs, rows_max, more)


def poisoned(repository: Path, rows_max: int = ROWS_MAX, *, name: str = "poisoned", more: str = "") -> str:
    """INPUT → OUTPUT (FP32, any width), the same tensor; error 500 for a request with `POISON` in any row."""
    inputs, outputs = [("INPUT", "FP32", (-1,))], [("OUTPUT", "FP32", (-1,))]
    return write(repository, name, _POISONED.format(poison=POISON), inputs, outputs, rows_max, more)


def counts_up(repository: Path, *, name: str = "counts_up", pause: float = 0.0) -> str:
    """A decoupled model without rows: COUNT (INT32, shape [1]) → so many answers NUMBER (INT32, [1]): 0, 1, …

    `pause` [s] lies before each answer. Only streams can ask it.
    """
    inputs, outputs = [("COUNT", "INT32", (1,))], [("NUMBER", "INT32", (1,))]
    source, decoupled = _COUNTS_UP.format(pause=pause), "model_transaction_policy { decoupled: true }"
    return write(repository, name, source, inputs, outputs, 0, decoupled)


Tensor = tuple[str, str, tuple[int, ...]]
"""Name, data type as in KServe v2, dimensions beside the rows (-1: any)."""


def write(
    repository: Path,
    name: str,
    source: str,
    inputs: list[Tensor],
    outputs: list[Tensor],
    rows_max: int,
    more: str = "",
) -> str:
    """Write a model whose class is `source`; anew if it is there already."""
    folder = repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    lines = [f'name: "{name}"', 'backend: "python"', f"max_batch_size: {rows_max}"]
    lines += [f"{kind} [{_tensors(tensors)}]" for kind, tensors in (("input", inputs), ("output", outputs))]
    if "instance_group" not in more:
        lines.append("instance_group [{ kind: KIND_CPU, count: 1 }]")
    (folder / "config.pbtxt").write_text("\n".join([*lines, more, ""]))
    (folder / "1" / "model.py").write_text(_IMPORTS + source)
    return name


def _tensors(tensors: list[Tensor]) -> str:
    return ", ".join(
        f'{{ name: "{name}", data_type: TYPE_{_CONFIG_NAMES.get(datatype, datatype)}, dims: {list(dims)} }}'
        for name, datatype, dims in tensors
    )


_CONFIG_NAMES = {"BYTES": "STRING"}

_IMPORTS = """\
import time
import numpy as np
import triton_python_backend_utils as triton


def read(request, name):
    return triton.get_input_tensor_by_name(request, name).as_numpy()


def answer(**outputs):
    return triton.InferenceResponse([triton.Tensor(name, value) for name, value in outputs.items()])


"""

_IDENTITY = """\
class TritonPythonModel:
    def execute(self, requests):
        return [triton.InferenceResponse([self.same(request)]) for request in requests]

    def same(self, request):
        tensor = triton.get_input_tensor_by_name(request, "INPUT")
        return {same}
"""

_SAME_ARRAY = 'triton.Tensor("OUTPUT", tensor.as_numpy())'
_SAME_MEMORY = 'triton.Tensor.from_dlpack("OUTPUT", tensor)'
"""The only way for BF16, which NumPy does not have."""

_ARITHMETIC = """\
class TritonPythonModel:
    def execute(self, requests):
        return [self.reckon(read(request, "LEFT"), read(request, "RIGHT")) for request in requests]

    def reckon(self, left, right):
        product = (left * right).sum(-1, keepdims=True, dtype=np.float32)
        return answer(SUM=left + right, GREATER=left > right, PRODUCT=product)
"""

_UPPER_CASE = """\
class TritonPythonModel:
    def execute(self, requests):
        return [self.raised(read(request, "TEXT")) for request in requests]

    def raised(self, texts):
        upper = np.array([text.upper() for text in texts.reshape(-1)], object).reshape(texts.shape)
        length = np.array([len(text) for text in texts.reshape(-1)], np.int32).reshape(texts.shape)
        return answer(UPPER=upper, LENGTH=length)
"""

_IGNORES_ROWS = """\
class TritonPythonModel:
    def execute(self, requests):
        return [self.lump(read(request, "INPUT")) for request in requests]

    def lump(self, values):
        return answer(OUTPUT=values.sum(dtype=np.float32).reshape(1, 1))
"""

_TIMED = """\
class TritonPythonModel:
    def execute(self, requests):
        inputs = [read(request, "INPUT") for request in requests]
        time.sleep({alpha!r} + {beta!r} * sum(len(rows) for rows in inputs))
        return [answer(OUTPUT=rows) for rows in inputs]
"""

_POISONED = """\
class TritonPythonModel:
    def execute(self, requests):
        return [self.taste(read(request, "INPUT")) for request in requests]

    def taste(self, values):
        if (values == {poison!r}).any():
            return triton.InferenceResponse(error=triton.TritonError("poison was asked for"))
        return answer(OUTPUT=values)
"""

_COUNTS_UP = """\
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(read(request, "COUNT").reshape(-1)[0])):
                time.sleep({pause!r})
                sender.send(answer(NUMBER=np.array([number], np.int32)))
            sender.send(flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
