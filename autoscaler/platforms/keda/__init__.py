"""The platform `keda`: answers KEDA, which asks, instead of telling anybody."""

from autoscaler.platforms.keda.options import KedaOptions, KedaServerOptions
from autoscaler.platforms.keda.platform import Keda
from autoscaler.platforms.keda.server import KedaServer

__all__ = ["Keda", "KedaOptions", "KedaServer", "KedaServerOptions"]
