"""What the user says of replicas in a cluster: what is scaled, behind which Service, and who we are there."""

from dataclasses import dataclass
from pathlib import Path

from autoscaler.platforms.kubernetes.names import API_VERSION, OBJECT_NAME
from autoscaler.remote_fleet import RemoteFleetOptions


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """What is scaled for one pool, and where its pods are listed."""

    name: str
    """Of what is scaled."""
    service: str
    """Service of the replicas; its EndpointSlices say which pods are ready, and at which address."""
    fleet: RemoteFleetOptions
    """How the replicas are watched; they are found by the Service only."""
    kind: str = "Deployment"
    """Of what is scaled: anything with a `/scale` subresource."""
    api_version: str = "apps/v1"
    """API group and version of `kind`."""
    namespace: str | None = None
    """Where it is; None is the namespace of this program's own pod, or of the kubeconfig's context."""
    port: str | None = None
    """Port of the Service's endpoints, by name or number; None if there is one only."""
    is_https: bool = False
    """Whether the replicas speak HTTPS."""
    kubeconfig: Path | None = None
    """File that says how the API is reached; None is the service account of this pod, or else what kubectl
    would use."""
    context: str | None = None
    """Context of the kubeconfig; None is its current one."""
    drain_max: float = 60.0
    """A replica that is to go gets nothing new, and its pod is let go once it holds nothing, or after so long
    [s]; keep it above the longest service."""

    def __post_init__(self) -> None:
        for key in ("name", "service", "namespace"):
            value = getattr(self, key)
            if value is not None and not OBJECT_NAME.fullmatch(value):
                raise ValueError(f"{key}: {value!r} is no name of Kubernetes; use a-z, 0-9, - and .")
        if not API_VERSION.fullmatch(self.api_version):
            raise ValueError(f"api_version: {self.api_version!r} is none; write it as apps/v1")
        if not self.fleet.is_told:
            raise ValueError("the replicas are found by their Service; remove urls and dns")
        if self.drain_max < 0:
            raise ValueError(f"need drain_max >= 0 s, got {self.drain_max}")
