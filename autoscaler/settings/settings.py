"""What the program runs with: the options of every part, made and checked, in one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from autoscaler.control_loop import ControlOptions
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.domain import Objective
from autoscaler.platforms.exec_command.options import ExecOptions
from autoscaler.platforms.keda.options import KedaOptions, KedaServerOptions
from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.platforms.webhook.options import WebhookOptions
from autoscaler.proxy.batch.options import BatchingOptions
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.tenants.options import TenantOptions
from autoscaler.scaling import DecisionPolicy
from autoscaler.settings.grpc_port import GrpcPort
from autoscaler.settings.schema_leadership import LeadershipOptions
from autoscaler.sharing.told_fleet import ToldOptions
from autoscaler.telemetry.demand.options import DemandOptions
from autoscaler.telemetry.signal_watch import SignalOptions
from autoscaler.tls import ServerTls
from autoscaler.units import Address

DEFAULT_ADMIN = Address("127.0.0.1", 8082)
DEFAULT_HISTORY = Path("autoscaler.db")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Which kind of model server the replicas of a pool are, and how it is asked whether it is ready."""

    kind: Literal["plain_http", "triton", "openai"]
    probe_timeout: float
    """No answer to a probe within it is a no [s]."""
    ready_path: str = ""
    """Of a plain HTTP server: the path that answers 2xx when it is ready."""
    model: str | None = None
    """Of Triton and OpenAI servers: the model that must be ready too; None asks only the server."""
    models: tuple[str, ...] = ()
    """Of OpenAI servers: other names that they are asked by, such as those of adapters."""
    grpc_port: GrpcPort | None = None
    """Of Triton servers that somebody else runs: where they take gRPC; None if they do not."""
    probe_over: str = "http"
    """Of Triton servers: `grpc` asks at their gRPC port, for those whose HTTP port is closed."""
    load_model: bool = False
    """Of Triton servers: have them load the model, should they have it and not have loaded it."""
    batching: BatchingOptions | None = None
    """Of Triton servers: whether requests are merged for them, and how."""


@dataclass(frozen=True, slots=True)
class AdminAccess:
    """Who may read the admin listener."""

    token_file: Path | None = None
    """File with the token that must be sent as `Authorization: Bearer`; None asks for none. Health and
    readiness are told without it."""
    tls: ServerTls | None = None
    """Its certificate; None for plain text."""


RemoteOptions = WebhookOptions | ExecOptions | KedaOptions | KubernetesOptions
"""Where somebody else starts and ends the replicas of a pool."""

PlatformOptions = StaticOptions | LocalOptions | ToldOptions | RemoteOptions
"""Where the replicas of a pool live."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """One pool: who is served, by what, and how well."""

    name: str
    route: RouteOptions
    queue: QueueOptions
    server: ServerOptions
    slots_per_replica: int
    """Requests one replica serves at a time [1]; where that is found out, before it is."""
    objective: Objective
    policy: DecisionPolicy
    platform: PlatformOptions
    dispatch: DispatchOptions = field(default_factory=DispatchOptions)
    grpc_tls: bool = False
    """Whether they take gRPC with TLS only."""
    speaks_grpc: bool = False
    """Whether its servers take gRPC, so that the gRPC listener is there."""
    auto_slots: SlotOptions | None = None
    """Ask each server for its slots, or learn them, so that they keep this; None: they are set."""
    state_dir: Path = Path()
    """Folder of what is kept of this pool for the next start."""
    signals: tuple[SignalOptions, ...] = ()
    """Metrics of other programs that are read and tested."""
    demand: DemandOptions | None = None
    """Where the demand is read; None if it is measured here."""
    substitute: str | None = None
    """The pool that stands in for this one while what is ordered here does not come; None: none does."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole program."""

    proxy: ProxyOptions
    control: ControlOptions
    pools: Mapping[str, PoolSettings]
    """By name, in the order of the file."""
    admin: Address = DEFAULT_ADMIN
    """Where metrics, health and decisions are shown; apart, so that overload cannot starve a probe."""
    history: Path = DEFAULT_HISTORY
    """SQLite file of arrivals and decisions."""
    grpc: GrpcOptions = field(default_factory=GrpcOptions)
    """The gRPC listener, which is there if a pool speaks gRPC."""
    tenants: TenantOptions = field(default_factory=TenantOptions)
    admin_access: AdminAccess = field(default_factory=AdminAccess)
    leadership: LeadershipOptions = None
    """Which of several controllers acts; None if there is one only."""
    keda: KedaServerOptions = field(default_factory=KedaServerOptions)
    """The listener that KEDA asks, which is there if a pool is of that kind."""

    @property
    def only_decides(self) -> bool:
        """Whether requests do not come here, for their demand is read elsewhere."""
        return bool(self.pools) and all(pool.demand is not None for pool in self.pools.values())

    @property
    def speaks_to_keda(self) -> bool:
        """Whether there is a listener that KEDA asks."""
        return any(isinstance(pool.platform, KedaOptions) for pool in self.pools.values())

    @property
    def speaks_grpc(self) -> bool:
        """Whether there is a gRPC listener."""
        return any(pool.speaks_grpc for pool in self.pools.values())
