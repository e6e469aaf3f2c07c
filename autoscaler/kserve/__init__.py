"""Inference requests of KServe v2 as values: read, merged into one, and its answer split again.

    body of a client ─▶ read_http, read_grpc ─▶ InferRequest ─┐
                                                             ├─▶ merge ─▶ one binary HTTP body ─▶ server
    body of another  ─▶          …           ─▶ InferRequest ─┘                                     │
    answers          ◀─ write_http, write_grpc ◀─ InferAnswer ◀─ split ◀─ read_answer ◀─────────────┘

A tensor stays the bytes that it came as, wherever its layout allows: row-major and little-endian, as on the
wire. So merging is joining, and splitting is cutting.

What cannot be understood in full is not touched: `NotMergeable` says so, and the request goes alone, as it
is, to the server, which says what is wrong with it better than anybody else could.

Sources: the KServe "Open Inference Protocol" (version 2), and Triton's extensions of it for binary tensors,
classification, sequences and shared memory.
"""
