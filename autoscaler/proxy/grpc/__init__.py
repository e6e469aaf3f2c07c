"""The gRPC listener: KServe v2 (`inference.GRPCInferenceService`) through the same queues as HTTP.

    method ─▶ whose is it? ─▶ wait for a slot ─▶ call the replica ─▶ its messages, status and trailers back
    handler   routes            drive              channels             inference, stream, control

Messages pass as the bytes that they are: nothing is parsed but the name of the model, which is looked for in
the outermost fields of the message (`model_name`). An inference or a stream of inferences holds one lease of
the pool's ledger, as an HTTP request does; questions about the server hold none (`methods` says which is
which). A deadline runs on through the queue to the replica, a client that leaves is felt there, and a refusal
of this program is a status with the code that gRPC has for it (`answers`).

gRPC is HTTP/2, and hop by hop: connections, pings, compression and the time-out header belong to one hop, and
both libraries speak them for themselves. What belongs to the call is passed on (`metadata`).
"""
