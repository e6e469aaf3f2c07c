"""The platform that a pool's settings name."""

from autoscaler.model_servers.openai import OpenAI
from autoscaler.platforms.exec_command import ExecCommand, ExecOptions
from autoscaler.platforms.keda import Keda, KedaOptions
from autoscaler.platforms.kubernetes import Kubernetes, KubernetesOptions
from autoscaler.platforms.local_process import LocalOptions, LocalProcesses
from autoscaler.platforms.static import Static, StaticOptions
from autoscaler.platforms.webhook import Webhook, WebhookOptions
from autoscaler.ports import Clock, ModelServer, Platform
from autoscaler.settings.settings import PlatformOptions
from autoscaler.sharing.told_fleet import ToldOptions


def make_platform(options: PlatformOptions, server: ModelServer, clock: Clock) -> Platform:
    """Make it; nothing runs before it is started."""
    match options:
        case StaticOptions():
            return Static(options, server)
        case LocalOptions():
            return LocalProcesses(options, server, clock, server if isinstance(server, OpenAI) else None)
        case WebhookOptions():
            return Webhook(options, server, clock)
        case ExecOptions():
            return ExecCommand(options, server, clock)
        case KedaOptions():
            return Keda(options, server, clock)
        case KubernetesOptions():
            return Kubernetes(options, server, clock)
        case ToldOptions():
            raise ValueError("whoever is told of its replicas by a controller scales none: use a sidecar")
