"""The platform `kubernetes`: replicas are the pods of anything that has a `/scale` subresource.

And leadership among programs by a Lease.
"""

from autoscaler.platforms.kubernetes.lease import LeaseLeadership, LeaseOptions
from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.kubernetes.platform import Kubernetes

__all__ = ["Kubernetes", "KubernetesOptions", "LeaseLeadership", "LeaseOptions"]
