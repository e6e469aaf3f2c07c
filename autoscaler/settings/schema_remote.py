"""The keys of platforms whose replicas somebody else starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from autoscaler.platforms.exec_command.options import ExecOptions
from autoscaler.platforms.keda.options import KedaOptions
from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.webhook.options import WebhookOptions
from autoscaler.remote_fleet.options import RemoteFleetOptions
from autoscaler.settings.grpc_port import GrpcPort
from autoscaler.settings.platform_rules import EXEC_RULES, KEDA_RULES, WEBHOOK_RULES
from autoscaler.settings.rules import in_order
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import (
    ApiVersion,
    Command,
    Count,
    Duration,
    FilePath,
    ObjectName,
    OrNone,
    PortName,
    Text,
    Url,
    WebAddress,
    YesNo,
)
from autoscaler.tls import ClientTls

_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""
_FILE = OrNone(FilePath())


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What a platform needs to know of its pool."""

    name: str
    slots_per_replica: int
    state_dir: Path
    grpc_port: GrpcPort | None = None


class RemoteFleetSection(Section):
    """Where the replicas are found, and how they are watched: `RemoteFleetOptions`."""

    urls: tuple[Annotated[str, Url()], ...] = default(RemoteFleetOptions, "urls")
    dns: Annotated[str | None, OrNone(Url())] = default(RemoteFleetOptions, "dns")
    look_interval: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "look_interval")
    probe_interval: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(RemoteFleetOptions, "probe_failures")
    start_timeout: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "start_timeout")
    cold_start_initial: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "cold_start_initial")

    def fleet(self, pool: PoolFacts) -> RemoteFleetOptions:
        """Return where the replicas of `pool` are found."""
        return RemoteFleetOptions(
            state_dir=pool.state_dir,
            slots_per_replica=pool.slots_per_replica,
            grpc_target=None if pool.grpc_port is None else pool.grpc_port.target,
            **self.model_dump(include=set(RemoteFleetSection.model_fields)),
        )


class WebhookPlatform(RemoteFleetSection):
    """Each change is posted to a URL: `WebhookOptions`."""

    kind: Literal["webhook"]
    url: Annotated[str, WebAddress(), Field(examples=["https://scaler.example.org/scale"])]
    secret_file: Annotated[Path | None, _FILE] = default(WebhookOptions, "secret_file")
    status_url: Annotated[str | None, OrNone(WebAddress())] = default(WebhookOptions, "status_url")
    status_interval: Annotated[float, _SOME_TIME] = default(WebhookOptions, "status_interval")
    timeout: Annotated[float, _SOME_TIME] = default(WebhookOptions, "timeout")
    retry_initial: Annotated[float, _SOME_TIME] = default(WebhookOptions, "retry_initial")
    retry_max: Annotated[float, _SOME_TIME] = default(WebhookOptions, "retry_max")
    ca: Annotated[Path | None, _FILE] = None

    RULES = WEBHOOK_RULES

    def options(self, pool: PoolFacts) -> WebhookOptions:
        """Return the options of the platform."""
        own = set(WebhookPlatform.model_fields) - set(RemoteFleetSection.model_fields) - {"kind", "ca"}
        return WebhookOptions(
            pool=pool.name,
            fleet=self.fleet(pool),
            tls=None if self.ca is None else ClientTls(ca=self.ca),
            **self.model_dump(include=own),
        )


class ExecPlatform(RemoteFleetSection):
    """Commands scale and tell the fleet: `ExecOptions`."""

    kind: Literal["exec"]
    scale: Annotated[tuple[str, ...], Command(), Field(examples=['["./scale.sh", "{replicas}"]'])]
    status: Annotated[tuple[str, ...] | None, OrNone(Command())] = None
    env: dict[str, Annotated[str, Text(least=0)]] = Field(default_factory=dict)
    cwd: Annotated[str | None, Text()] = default(ExecOptions, "cwd")
    timeout: Annotated[float, _SOME_TIME] = default(ExecOptions, "timeout")
    status_interval: Annotated[float, _SOME_TIME] = default(ExecOptions, "status_interval")
    retry_initial: Annotated[float, _SOME_TIME] = default(ExecOptions, "retry_initial")
    retry_max: Annotated[float, _SOME_TIME] = default(ExecOptions, "retry_max")

    RULES = EXEC_RULES

    def options(self, pool: PoolFacts) -> ExecOptions:
        """Return the options of the platform."""
        return ExecOptions(
            pool=pool.name,
            scale=self.scale,
            fleet=self.fleet(pool),
            status=self.status or (),
            env=self.env,
            cwd=None if self.cwd is None else Path(self.cwd),
            timeout=self.timeout,
            status_interval=self.status_interval,
            retry_initial=self.retry_initial,
            retry_max=self.retry_max,
        )


class KedaPlatform(RemoteFleetSection):
    """KEDA asks for the number of replicas: `KedaOptions`."""

    kind: Literal["keda"]

    RULES = KEDA_RULES

    def options(self, pool: PoolFacts) -> KedaOptions:
        """Return the options of the platform."""
        return KedaOptions(pool.name, self.fleet(pool))


class KubernetesPlatform(Section):
    """Pods behind a Service, through the API server: `KubernetesOptions`."""

    kind: Literal["kubernetes"]
    name: Annotated[str, ObjectName(), Field(examples=["chat"])]
    service: Annotated[str, ObjectName(), Field(examples=["chat"])]
    resource_kind: Annotated[str, Text()] = default(KubernetesOptions, "kind")
    api_version: Annotated[str, ApiVersion()] = default(KubernetesOptions, "api_version")
    namespace: Annotated[str | None, OrNone(ObjectName())] = default(KubernetesOptions, "namespace")
    port: Annotated[str | None, OrNone(PortName())] = default(KubernetesOptions, "port")
    https: Annotated[bool, YesNo()] = default(KubernetesOptions, "is_https")
    kubeconfig: Annotated[Path | None, _FILE] = default(KubernetesOptions, "kubeconfig")
    context: Annotated[str | None, OrNone(Text())] = default(KubernetesOptions, "context")
    drain_max: Annotated[float, Duration()] = default(KubernetesOptions, "drain_max")
    probe_interval: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(RemoteFleetOptions, "probe_failures")
    start_timeout: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "start_timeout")
    cold_start_initial: Annotated[float, _SOME_TIME] = default(RemoteFleetOptions, "cold_start_initial")

    RULES = (in_order("cold_start_initial", "start_timeout"),)

    def options(self, pool: PoolFacts) -> KubernetesOptions:
        """Return the options of the platform."""
        return KubernetesOptions(
            name=self.name,
            service=self.service,
            fleet=RemoteFleetOptions(
                state_dir=pool.state_dir,
                slots_per_replica=pool.slots_per_replica,
                grpc_target=None if pool.grpc_port is None else pool.grpc_port.target,
                probe_interval=self.probe_interval,
                probe_failures=self.probe_failures,
                start_timeout=self.start_timeout,
                cold_start_initial=self.cold_start_initial,
            ),
            kind=self.resource_kind,
            api_version=self.api_version,
            namespace=self.namespace,
            port=self.port,
            is_https=self.https,
            kubeconfig=self.kubeconfig,
            context=self.context,
            drain_max=self.drain_max,
        )


RemotePlatform = WebhookPlatform | ExecPlatform | KedaPlatform | KubernetesPlatform
"""Any of them."""
