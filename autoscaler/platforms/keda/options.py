"""What the user says of a pool that KEDA scales, and of the listener that KEDA asks."""

from dataclasses import dataclass

from autoscaler.remote_fleet import RemoteFleetOptions
from autoscaler.tls import ServerTls


@dataclass(frozen=True, slots=True)
class KedaOptions:
    """Where the replicas of one pool are that KEDA scales."""

    pool: str
    """Name of the pool; a ScaledObject names it in its trigger's metadata, as `pool`."""
    fleet: RemoteFleetOptions
    """Where the replicas are found: `dns` of their headless service, or `urls`."""

    def __post_init__(self) -> None:
        if self.fleet.is_told:
            raise ValueError(
                "nothing says where the replicas are; give dns, the URL of their headless service, or urls"
            )


@dataclass(frozen=True, slots=True)
class KedaServerOptions:
    """The listener that KEDA asks."""

    host: str = "127.0.0.1"
    """Address to listen on; set it to every interface where KEDA is on another machine."""
    port: int = 8083
    """TCP port; 0 takes any free one."""
    tls: ServerTls | None = None
    """Its certificate; None for plain text."""
