"""Triton's model `embed`: TEXT in, a real MiniLM sentence embedding out, in the time of an emulated
accelerator.

Runs inside Triton's Python backend, one process an instance; `serve` copies it into the model repository.
The embedding is computed on the CPU within milliseconds; then the instance stays busy until the service
time of the emulated accelerator is over, so that a machine with two cores behaves like a rack of GPUs;
loading weights onto it takes its time as well. Service times are lognormal. The draw is seeded by request
id and text: the same request takes the same time on every replica.
"""

import math
import os
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-not-found]  # in Triton's environment only
import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # made by Triton at run time
from tokenizers import Tokenizer  # type: ignore[import-not-found]  # in Triton's environment only

TOKENS_MAX = 128


class TritonPythonModel:
    """The class that Triton's Python backend looks for; its method names are given."""

    def initialize(self, args: dict[str, str]) -> None:
        loaded = time.monotonic() + float(os.environ["EMBED_LOAD_TIME"])
        home = Path(os.environ["EMBED_HOME"])
        self._mean = float(os.environ["EMBED_SERVICE_TIME"])
        self._scv = float(os.environ["EMBED_SERVICE_SCV"])
        self._session = ort.InferenceSession(
            str(home / "minilm.onnx"), session_options(), providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(home / "tokenizer.json"))
        self._tokenizer.enable_padding()
        self._tokenizer.enable_truncation(TOKENS_MAX)
        self._embed(["warm"])
        time.sleep(max(0.0, loaded - time.monotonic()))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one execution; without dynamic batching there is one."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        began = time.monotonic()
        texts = triton.get_input_tensor_by_name(request, "TEXT").as_numpy()
        flat = [text.decode("utf-8", "replace") for text in texts.reshape(-1)]
        vectors = self._embed(flat)
        seed = zlib.crc32("\0".join([request.request_id(), *flat]).encode())
        ends = began + service_time(self._mean, self._scv, np.random.default_rng(seed))
        time.sleep(max(0.0, ends - time.monotonic()))
        return triton.InferenceResponse([triton.Tensor("EMBEDDING", vectors)])

    def _embed(self, texts: list[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), 384); the batch is padded to its longest text."""
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([item.ids for item in encoded], np.int64)
        mask = np.array([item.attention_mask for item in encoded], np.int64)
        vectors: np.ndarray = self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]
        return vectors


def session_options() -> Any:
    """One thread, and the weights as they lie in the mapped file.

    Prepacking would take a sixth off the 34 ms of 128 tokens, and 41 MB of private memory in every instance.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_prepacking", "1")
    return options


def service_time(mean: float, scv: float, rng: np.random.Generator) -> float:
    """Draw a lognormal service time [s] of given mean [s] and squared coefficient of variation [1].

    σ² = ln(1 + scv), μ = ln(mean) − σ²/2. Said again in `load.services`, which this environment cannot
    import.
    """
    variance = math.log1p(scv)
    return float(rng.lognormal(math.log(mean) - variance / 2, math.sqrt(variance))) if mean > 0 else 0.0
