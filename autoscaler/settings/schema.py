"""The keys of the configuration file, section by section.

A field says what its value looks like (`values`) and where its default comes from: from the options of
the part that it configures, which also say what it means. `build` makes those options.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from autoscaler.control_loop import ControlOptions
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.domain import Objective
from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton
from autoscaler.platforms.keda.options import KedaServerOptions
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.proxy.batch.options import BatchingOptions, Mode
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.tenants.options import TenantOptions
from autoscaler.scaling import DecisionPolicy
from autoscaler.settings.grpc_port import BESIDE_HTTP, GrpcPort
from autoscaler.settings.schema_demand import DemandSection
from autoscaler.settings.schema_http import HttpSection
from autoscaler.settings.schema_leadership import LeadershipSection
from autoscaler.settings.schema_queue import DispatchSection, QueueSection
from autoscaler.settings.schema_remote import RemotePlatform
from autoscaler.settings.schema_signals import SignalsSection
from autoscaler.settings.section import Section, default
from autoscaler.settings.settings import DEFAULT_ADMIN, DEFAULT_HISTORY
from autoscaler.settings.values import (
    Choice,
    Command,
    Count,
    Duration,
    FilePath,
    Fraction,
    GrpcPortKind,
    HeaderName,
    Listening,
    OrAuto,
    OrNone,
    Share,
    Size,
    Switch,
    Text,
    Url,
    UrlPath,
    YesNo,
)
from autoscaler.tls import ClientTls, ServerTls
from autoscaler.units import Address

ACT, RECOMMEND = "act", "recommend"
HTTP, GRPC = "http", "grpc"
FILE = OrNone(FilePath())
SOME_TIME = Duration(least=0.001)
"""For what must take some time."""


class DrainSection(Section):
    """How the program lets go of its clients: `ProxyOptions`."""

    grace: Annotated[float, Duration()] = default(ProxyOptions, "drain_grace")
    max: Annotated[float, Duration()] = default(ProxyOptions, "drain_max")


class ListenerTlsSection(Section):
    """What a listener shows, and whom it lets in: `ServerTls`."""

    certificate: Annotated[Path | None, FILE] = None
    key: Annotated[Path | None, FILE] = None
    client_ca: Annotated[Path | None, FILE] = None

    def check(self) -> None:
        """Raise ValueError if one is given without the other that it needs."""
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together; give both or neither")
        if self.client_ca is not None and self.certificate is None:
            raise ValueError("client_ca needs a certificate and a key; give them too, or remove it")

    @property
    def options(self) -> ServerTls | None:
        """Return the options; None for plain text."""
        if self.certificate is None or self.key is None:
            return None
        return ServerTls(self.certificate, self.key, self.client_ca)


class AdminAccessSection(ListenerTlsSection):
    """Who may read the admin listener: `AdminAccess`."""

    token_file: Annotated[Path | None, FILE] = None


class ServerTlsSection(Section):
    """How the servers of a pool are checked: `ClientTls`."""

    ca: Annotated[Path | None, FILE] = default(ClientTls, "ca")
    server_name: Annotated[str | None, OrNone(Text())] = default(ClientTls, "server_name")
    certificate: Annotated[Path | None, FILE] = default(ClientTls, "certificate")
    key: Annotated[Path | None, FILE] = default(ClientTls, "key")
    grpc: Annotated[bool, YesNo()] = False

    @property
    def options(self) -> ClientTls:
        """Return the options."""
        return ClientTls(self.ca, self.server_name, self.certificate, self.key)

    def check(self) -> None:
        """Raise ValueError if the options do not go together."""
        _ = self.options


class GrpcSection(Section):
    """The gRPC listener: `GrpcOptions`."""

    listen: Annotated[Address, Listening()] = Address(
        default(GrpcOptions, "host"), default(GrpcOptions, "port")
    )
    keepalive: Annotated[float, Duration(least=300.0)] = default(GrpcOptions, "keepalive")
    connection_age_max: Annotated[float, Duration(least=1.0)] = default(GrpcOptions, "connection_age_max")
    message_max: Annotated[int | None, OrNone(Size(least=1))] = default(GrpcOptions, "message_bytes_max")


class KedaSection(ListenerTlsSection):
    """The listener that KEDA asks: `KedaServerOptions`."""

    listen: Annotated[Address, Listening()] = Address(
        default(KedaServerOptions, "host"), default(KedaServerOptions, "port")
    )


class TenantsSection(Section):
    """Whose requests they are: `TenantOptions`."""

    keys_file: Annotated[Path | None, FILE] = default(TenantOptions, "keys_file")
    header: Annotated[str | None, OrNone(HeaderName())] = default(TenantOptions, "header")
    required: Annotated[bool, YesNo()] = default(TenantOptions, "required")
    forward_keys: Annotated[bool, YesNo()] = default(TenantOptions, "forward_keys")
    names_max: Annotated[int, Count()] = default(TenantOptions, "names_max")


class RouteSection(Section):
    """Which requests go to the pool: `RouteOptions`."""

    prefix: Annotated[str, UrlPath()] = default(RouteOptions, "prefix")
    priority_class: Annotated[str, Text()] = default(RouteOptions, "priority_class")
    urgency_from_clients: Annotated[bool, YesNo()] = default(RouteOptions, "urgency_from_clients")
    hedge: Annotated[bool, YesNo()] = default(RouteOptions, "hedge")
    broadcast: tuple[Annotated[str, UrlPath()], ...] = default(RouteOptions, "broadcast")


class TimeoutsSection(Section):
    """How long an answer may take: `RouteOptions`."""

    first_byte: Annotated[float | None, OrNone(SOME_TIME)] = default(RouteOptions, "first_byte_timeout")
    idle: Annotated[float | None, OrNone(SOME_TIME)] = default(RouteOptions, "idle_timeout")


class PlainHttpServer(Section):
    """`model_servers.plain_http`."""

    kind: Literal["plain_http"] = "plain_http"
    ready_path: Annotated[str, UrlPath()] = default(PlainHttp, "ready_path")
    probe_timeout: Annotated[float, SOME_TIME] = default(PlainHttp, "timeout")


class TritonServer(Section):
    """`model_servers.triton`."""

    kind: Literal["triton"]
    model: Annotated[str | None, OrNone(Text())] = default(Triton, "model")
    probe_timeout: Annotated[float, SOME_TIME] = default(Triton, "timeout")
    grpc_port: Annotated[GrpcPort | None, OrNone(GrpcPortKind())] = BESIDE_HTTP
    probe_over: Annotated[str, Choice((HTTP, GRPC))] = HTTP
    load_model: Annotated[bool, YesNo()] = default(Triton, "load_model")
    batching: Annotated[Mode, Switch("auto")] = default(BatchingOptions, "mode")
    batch_rows_max: Annotated[int | None, OrNone(Count(least=1))] = default(BatchingOptions, "rows_max")
    batch_time_max: Annotated[float | None, OrNone(SOME_TIME)] = None
    batch_check: Annotated[float, Share()] = default(BatchingOptions, "check_ratio")

    @property
    def batching_options(self) -> BatchingOptions:
        """Return the options of batching."""
        return BatchingOptions(self.batching, self.batch_rows_max, self.batch_check)

    def check(self) -> None:
        """Raise ValueError if the values do not go together."""
        if self.load_model and self.model is None:
            raise ValueError(
                "load_model is true, and no model is named; name it as model, or remove load_model"
            )
        if self.probe_over == GRPC and self.grpc_port is None:
            raise ValueError(
                "probe_over is grpc, and grpc_port is none; say where they take gRPC, or probe over http"
            )


class OpenAIServer(Section):
    """`model_servers.openai`."""

    kind: Literal["openai"]
    model: Annotated[str | None, OrNone(Text())] = default(OpenAI, "model")
    models: tuple[Annotated[str, Text()], ...] = ()
    probe_timeout: Annotated[float, SOME_TIME] = default(OpenAI, "timeout")


class AutoSlotsSection(Section):
    """What slots keep where `slots_per_replica` is auto: `SlotOptions`."""

    service_time: Annotated[float | None, OrNone(SOME_TIME)] = default(SlotOptions, "service_time")
    token_time: Annotated[float | None, OrNone(SOME_TIME)] = default(SlotOptions, "token_time")
    max: Annotated[int, Count(least=1)] = default(SlotOptions, "slots_max")

    @property
    def options(self) -> SlotOptions:
        """Return the options."""
        return SlotOptions(self.service_time, self.token_time, self.max)

    def check(self) -> None:
        """Raise ValueError if the options do not go together."""
        _ = self.options


class ObjectiveSection(Section):
    """What the user wants: `Objective`."""

    wait: Annotated[float, Duration()] = default(Objective, "wait_seconds")
    quantile: Annotated[float, Fraction()] = default(Objective, "wait_quantile")
    utilization_low: Annotated[float, Fraction()] = default(Objective, "utilization_low")
    utilization_high: Annotated[float, Share()] = default(Objective, "utilization_high")


class ScalingSection(Section):
    """How the fleet may be moved: `DecisionPolicy`."""

    replicas_min: Annotated[int, Count()] = default(DecisionPolicy, "replicas_min")
    replicas_max: Annotated[int, Count(least=1)] = default(DecisionPolicy, "replicas_max")
    step_up_max: Annotated[int | None, OrNone(Count(least=1))] = default(DecisionPolicy, "step_up_max")
    step_down_max: Annotated[int | None, OrNone(Count(least=1))] = default(DecisionPolicy, "step_down_max")
    scale_down_hold: Annotated[float, Duration()] = default(DecisionPolicy, "scale_down_hold")
    catch_up_time: Annotated[float, SOME_TIME] = default(DecisionPolicy, "catch_up_time")
    edit_hold: Annotated[float, Duration()] = default(DecisionPolicy, "edit_hold")
    service_memory: Annotated[float, SOME_TIME] = default(DecisionPolicy, "service_memory")


class ForecastSection(Section):
    """What the forecast is made of: `DecisionPolicy`."""

    interval: Annotated[float, SOME_TIME] = default(DecisionPolicy, "forecast_interval")
    season: Annotated[float, SOME_TIME] = default(DecisionPolicy, "season")
    refit: Annotated[float, SOME_TIME] = default(DecisionPolicy, "refit_interval")
    history_max: Annotated[float, SOME_TIME] = default(DecisionPolicy, "history_max")


class StaticPlatform(Section):
    """Servers that somebody else runs: `StaticOptions`."""

    kind: Literal["static"]
    urls: Annotated[tuple[Annotated[str, Url()], ...], Field(examples=["[http://127.0.0.1:9001]"])]
    probe_interval: Annotated[float, SOME_TIME] = default(StaticOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(StaticOptions, "probe_failures")
    cold_start_initial: Annotated[float, SOME_TIME] = default(StaticOptions, "cold_start_initial")

    def options(self, slots_per_replica: int, grpc_port: GrpcPort | None = None) -> StaticOptions:
        """Return the options of the platform, whose servers take gRPC at `grpc_port`."""
        return StaticOptions(
            slots_per_replica=slots_per_replica,
            grpc_targets=() if grpc_port is None else tuple(map(grpc_port.target, self.urls)),
            **self.model_dump(exclude={"kind"}),
        )

    def check(self) -> None:
        """Raise ValueError if the options do not go together."""
        self.options(slots_per_replica=1)


class LocalPlatform(Section):
    """Processes on this machine: `LocalOptions`."""

    kind: Literal["local"]
    command: Annotated[
        tuple[str, ...], Command(), Field(examples=['["python3", "server.py", "--port", "{port}"]'])
    ]
    env: dict[str, Annotated[str, Text(least=0)]] = Field(default_factory=dict)
    cwd: Annotated[str | None, Text()] = default(LocalOptions, "cwd")
    gpus: tuple[Annotated[str, Text()], ...] = default(LocalOptions, "gpus")
    replicas_per_gpu: Annotated[int, Count(least=1)] = default(LocalOptions, "replicas_per_gpu")
    gpus_per_replica: Annotated[int, Count(least=1)] = default(LocalOptions, "gpus_per_replica")
    pin: Annotated[bool, YesNo()] = default(LocalOptions, "pin")
    ready_timeout: Annotated[float, SOME_TIME] = default(LocalOptions, "ready_timeout")
    probe_interval: Annotated[float, SOME_TIME] = default(LocalOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(LocalOptions, "probe_failures")
    hang_timeout: Annotated[float, SOME_TIME] = default(LocalOptions, "hang_timeout")
    restart_backoff_initial: Annotated[float, SOME_TIME] = default(LocalOptions, "restart_backoff_initial")
    restart_backoff_max: Annotated[float, SOME_TIME] = default(LocalOptions, "restart_backoff_max")
    drain_max: Annotated[float, Duration()] = default(LocalOptions, "drain_max")
    stop_grace: Annotated[float, Duration()] = default(LocalOptions, "stop_grace")
    cold_start_initial: Annotated[float, SOME_TIME] = default(LocalOptions, "cold_start_initial")
    sleepers_max: Annotated[int, Count()] = default(LocalOptions, "sleepers_max")
    log_max: Annotated[int, Size(least=1)] = default(LocalOptions, "log_bytes_max")

    def options(self, slots_per_replica: int, state_dir: Path) -> LocalOptions:
        """Return the options of the platform, which keeps its records in `state_dir`."""
        return LocalOptions(
            slots_per_replica=slots_per_replica,
            state_dir=state_dir,
            cwd=None if self.cwd is None else Path(self.cwd),
            log_bytes_max=self.log_max,
            **self.model_dump(exclude={"kind", "cwd", "log_max"}),
        )

    def check(self) -> None:
        """Raise ValueError if the options do not go together."""
        self.options(slots_per_replica=1, state_dir=Path())


class PoolSection(Section):
    """One pool: who is served, by what, and how well."""

    route: RouteSection = RouteSection()
    server: Annotated[PlainHttpServer | TritonServer | OpenAIServer, Field(discriminator="kind")] = (
        PlainHttpServer()
    )
    slots_per_replica: Annotated[int | None, OrAuto(Count(least=1))] = default(
        LocalOptions, "slots_per_replica"
    )
    auto_slots: AutoSlotsSection = AutoSlotsSection()
    tls: ServerTlsSection = ServerTlsSection()
    queue: QueueSection = QueueSection()
    dispatch: DispatchSection = DispatchSection()
    timeouts: TimeoutsSection = TimeoutsSection()
    objective: ObjectiveSection = ObjectiveSection()
    scaling: ScalingSection = ScalingSection()
    forecast: ForecastSection = ForecastSection()
    signals: dict[str, SignalsSection] = Field(default_factory=dict)
    demand: Annotated[DemandSection | None, Field(discriminator="kind")] = None
    platform: Annotated[
        StaticPlatform | LocalPlatform | RemotePlatform,
        Field(discriminator="kind", examples=["{kind: static, urls: [http://127.0.0.1:9001]}"]),
    ]

    def check(self) -> None:
        """Raise ValueError if the platform asks of the servers what their kind cannot do."""
        sleepers = self.platform.sleepers_max if isinstance(self.platform, LocalPlatform) else 0
        if sleepers and not isinstance(self.server, OpenAIServer):
            raise ValueError(
                f"platform.sleepers_max is {sleepers}, and servers of kind {self.server.kind} "
                "cannot sleep; set it to 0, or server.kind to openai if they are vLLM"
            )


class FileSection(Section):
    """The whole file."""

    listen: Annotated[Address, Listening()] = Address(
        default(ProxyOptions, "host"), default(ProxyOptions, "port")
    )
    admin: Annotated[Address, Listening()] = DEFAULT_ADMIN
    history: Annotated[str, Text()] = str(DEFAULT_HISTORY)
    state: Annotated[str | None, Text()] = None
    control_interval: Annotated[float, Duration(least=0.1)] = default(ControlOptions, "interval")
    mode: Annotated[str, Choice((ACT, RECOMMEND))] = ACT
    http: HttpSection = HttpSection()
    grpc: GrpcSection = GrpcSection()
    keda: KedaSection = KedaSection()
    tls: ListenerTlsSection = ListenerTlsSection()
    tenants: TenantsSection = TenantsSection()
    admin_access: AdminAccessSection = AdminAccessSection()
    leadership: LeadershipSection = LeadershipSection()
    drain: DrainSection = DrainSection()
    pools: Annotated[
        dict[str, PoolSection],
        Field(examples=["{main: {platform: {kind: static, urls: [http://127.0.0.1:9001]}}}"]),
    ]
