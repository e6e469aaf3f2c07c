"""NVIDIA Triton, and what else speaks KServe v2: is it ready, what do its models take, and how long.

server.py       the questions, and what the answers mean to us
described.py    answers as descriptions and slots
messages.py     what is asked and answered     wire.py       how gRPC carries it
over_http.py, over_grpc.py    two ways to ask
"""

from autoscaler.model_servers.triton.server import Triton

__all__ = ["Triton"]
