"""The methods of the service: which of them take a slot, and where each names its model.

An inference takes a slot, and so does a stream of them, for as long as it is open. Questions about a server
take none: they are cheap, and a client must be able to ask them of a pool that is busy. One that changes
something goes to every replica that is ready, since which of them will serve the next request is open.

Field numbers as in `grpc_service.proto` of KServe v2 and Triton.
"""

from dataclasses import dataclass
from enum import Enum, auto

_SERVICE = "/inference.GRPCInferenceService/"


class Kind(Enum):
    """How a method is served."""

    INFERENCE = auto()
    """One message each way, in a slot."""
    STREAM = auto()
    """Messages both ways, in one slot."""
    QUESTION = auto()
    """One message each way, of any replica, without a slot."""
    CHANGE = auto()
    """One message to each replica, without a slot."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method, by its path on the wire."""

    path: str
    kind: Kind
    model_field: int | None = None
    """Number of the field that names the model; None if the message names none."""
    if_none_is_ready: bytes | None = None
    """The answer while no replica is ready to be asked; None: that is an error."""
    is_probe: bool = False
    """Whether it needs no key: who asks it is a machine that looks after others."""


_NOT_READY = b""
"""`ready: false`: the value that is not written."""
_LIVE = b"\x08\x01"
"""Field 1, true."""
NOT_SERVING = b"\x08\x02"
"""`HealthCheckResponse.NOT_SERVING`: field 1, 2."""

HEALTH = "/grpc.health.v1.Health/Check"
SERVER_READY = f"{_SERVICE}ServerReady"

METHODS = {
    method.path: method
    for method in (
        Method(f"{_SERVICE}ModelInfer", Kind.INFERENCE, model_field=1),
        Method(f"{_SERVICE}ModelStreamInfer", Kind.STREAM, model_field=1),
        Method(f"{_SERVICE}ServerLive", Kind.QUESTION, if_none_is_ready=_LIVE, is_probe=True),
        Method(SERVER_READY, Kind.QUESTION, if_none_is_ready=_NOT_READY, is_probe=True),
        Method(f"{_SERVICE}ServerMetadata", Kind.QUESTION),
        Method(f"{_SERVICE}ModelReady", Kind.QUESTION, model_field=1, if_none_is_ready=_NOT_READY),
        Method(f"{_SERVICE}ModelMetadata", Kind.QUESTION, model_field=1),
        Method(f"{_SERVICE}ModelConfig", Kind.QUESTION, model_field=1),
        Method(f"{_SERVICE}ModelStatistics", Kind.QUESTION, model_field=1),
        Method(f"{_SERVICE}RepositoryIndex", Kind.QUESTION),
        Method(f"{_SERVICE}RepositoryModelLoad", Kind.CHANGE, model_field=2),
        Method(f"{_SERVICE}RepositoryModelUnload", Kind.CHANGE, model_field=2),
        Method(f"{_SERVICE}SystemSharedMemoryStatus", Kind.QUESTION),
        Method(f"{_SERVICE}SystemSharedMemoryRegister", Kind.CHANGE),
        Method(f"{_SERVICE}SystemSharedMemoryUnregister", Kind.CHANGE),
        Method(f"{_SERVICE}CudaSharedMemoryStatus", Kind.QUESTION),
        Method(f"{_SERVICE}CudaSharedMemoryRegister", Kind.CHANGE),
        Method(f"{_SERVICE}CudaSharedMemoryUnregister", Kind.CHANGE),
        Method(f"{_SERVICE}TraceSetting", Kind.CHANGE, model_field=2),
        Method(f"{_SERVICE}LogSettings", Kind.CHANGE),
        Method(HEALTH, Kind.QUESTION, if_none_is_ready=NOT_SERVING, is_probe=True),
    )
}
"""By path. A method that is not here is answered UNIMPLEMENTED."""
