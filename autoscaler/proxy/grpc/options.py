"""What can be set about the gRPC listener."""

from dataclasses import dataclass

from autoscaler.tls import ServerTls

_PING_INTERVAL_MIN = 300.0
"""A server that was not told otherwise takes more frequent pings for an attack, and hangs up [s]."""


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """Addresses and bounds of the gRPC listener, and of the channels to replicas."""

    host: str = "127.0.0.1"
    """Address to listen at. Set it empty, for every interface, to serve other machines."""
    port: int = 8081
    """Port to listen at; 0 lets the system choose one."""
    keepalive: float = 300.0
    """A connection on which nothing comes for so long is asked whether it is alive, on both sides [s]. Most
    servers hang up on whoever asks more often than every five minutes, so it cannot be shorter."""
    connection_age_max: float = 1800.0
    """A client's connection is closed in good order after so long [s], so that clients find other proxies
    behind the same name; calls on it end as they would. Shorten it where many proxies come and go."""
    message_bytes_max: int | None = None
    """Larger messages are refused, each way [bytes]; None for no limit, as tensors are large and the queue is
    bounded in bytes anyway. Set it where clients are not trusted with this machine's memory."""
    connect_timeout: float = 2.0
    """A replica must accept a connection within this [s]; else another is tried."""
    retries_max: int = 2
    """A request that did not reach a replica is tried again so often [1], first in the queue."""
    share_port: bool = False
    """Let another process listen at the same address, for a restart without a gap. It hides that the port is
    taken."""
    drain_grace: float = 0.0
    """On SIGTERM, keep accepting for so long [s]."""
    drain_max: float = 60.0
    """So long may calls in flight go on after that [s]; then they are ended with UNAVAILABLE."""
    tls: ServerTls | None = None
    """Certificate of the listener; None for plain text."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"need port in 0..65535, got {self.port}")
        if self.keepalive < _PING_INTERVAL_MIN:
            raise ValueError(f"need keepalive >= {_PING_INTERVAL_MIN:g} s, got {self.keepalive}")
        for name in ("connection_age_max", "connect_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")
        for name in ("retries_max", "drain_grace", "drain_max"):
            if getattr(self, name) < 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
        if self.message_bytes_max is not None and self.message_bytes_max < 1:
            raise ValueError(f"need message_bytes_max >= 1, got {self.message_bytes_max}")
