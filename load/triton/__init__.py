"""A real NVIDIA Triton Inference Server on CPU, serving a real sentence-embedding model on an emulated
accelerator.

`install` builds an environment of its own (Triton's Python backend wants NumPy 1); `serve` becomes one
server.

    .triton/
      bin/python, lib/…        the environment: Triton, onnxruntime, the tokenizer, MiniLM's weights
      backends/python/         Triton's Python backend beside the stub of this Python version
      minilm.onnx, minilm.bin  the network and its weights, apart so that all replicas map the same memory
      tokenizer.json
      repositories/N/          a model repository whose model `embed` has N instances (slots)
      installed                what all of it was built from; written last
"""
