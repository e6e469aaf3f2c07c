"""The platform `kubernetes`: replicas are the pods of anything that has a `/scale` subresource."""

from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.kubernetes.platform import Kubernetes

__all__ = ["Kubernetes", "KubernetesOptions"]
