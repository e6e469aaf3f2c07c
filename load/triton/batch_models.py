"""Models of the batching benchmark, as Triton's Python backend runs them.

`emulated` takes alpha + beta n for n rows, whoever merged them; `minilm` computes real sentence embeddings,
all rows of an execution together. Either may have Triton's own dynamic batcher, or not.
"""

from pathlib import Path

ROWS_MAX = 32

_CONFIG = """\
name: "{name}"
backend: "python"
max_batch_size: {rows_max}
input [{{ name: "{input}", data_type: {type}, dims: [{width}] }}]
output [{{ name: "{output}", data_type: TYPE_FP32, dims: [{out}] }}]
instance_group [{{ kind: KIND_CPU, count: 1 }}]
{more}
"""

_EMULATED = """\
import time
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        began = time.monotonic()
        rows = [triton.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        answers = [triton.InferenceResponse([triton.Tensor("Y", each)]) for each in rows]
        ends = began + {alpha!r} + {beta!r} * sum(len(each) for each in rows)
        time.sleep(max(0.0, ends - time.monotonic()))
        return answers
"""

_MINILM = """\
import os
from pathlib import Path

import numpy as np
import onnxruntime as ort
import triton_python_backend_utils as triton
from tokenizers import Tokenizer


class TritonPythonModel:
    def initialize(self, args):
        home = Path(os.environ["EMBED_HOME"])
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(str(home / "minilm.onnx"), options)
        self.tokenizer = Tokenizer.from_file(str(home / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(128)

    def execute(self, requests):
        texts = [triton.get_input_tensor_by_name(each, "TEXT").as_numpy().ravel() for each in requests]
        flat = [text.decode("utf-8", "replace") for each in texts for text in each]
        encoded = self.tokenizer.encode_batch(flat)
        ids = np.array([each.ids for each in encoded], np.int64)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        vectors = self.session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]
        ends = np.cumsum([len(each) for each in texts])[:-1]
        return [
            triton.InferenceResponse([triton.Tensor("EMBEDDING", own)])
            for own in np.split(vectors, ends)
        ]
"""


def emulated(repository: Path, alpha: float, beta: float, *, batcher: bool) -> None:
    """Write a model that takes alpha + beta n [s] for n rows."""
    config = {"name": "model", "input": "X", "type": "TYPE_FP32", "width": 4, "output": "Y", "out": 4}
    _write(repository, config, _EMULATED.format(alpha=alpha, beta=beta), batcher)


def minilm(repository: Path, *, batcher: bool) -> None:
    """Write a model that embeds sentences."""
    config = {"name": "model", "input": "TEXT", "type": "TYPE_STRING", "width": 1}
    _write(repository, config | {"output": "EMBEDDING", "out": 384}, _MINILM, batcher)


def _write(repository: Path, config: dict[str, object], source: str, batcher: bool) -> None:
    folder = repository / "model"
    (folder / "1").mkdir(parents=True, exist_ok=True)
    more = "dynamic_batching {}" if batcher else ""
    (folder / "config.pbtxt").write_text(_CONFIG.format(**config, rows_max=ROWS_MAX, more=more))
    (folder / "1" / "model.py").write_text(source)
