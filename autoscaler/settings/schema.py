"""The keys of the configuration file, section by section.

A field says what its value looks like (`values`) and where its default comes from: from the options of
the part that it configures, which also say what it means. `build` makes those options.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from autoscaler.control_loop import ControlOptions
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.domain import Objective
from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.scaling import DecisionPolicy
from autoscaler.settings.section import Section, default
from autoscaler.settings.settings import DEFAULT_ADMIN, DEFAULT_HISTORY
from autoscaler.settings.values import (
    Choice,
    Command,
    Count,
    Duration,
    Fraction,
    Listening,
    OrNone,
    Size,
    Text,
    Url,
    UrlPath,
)
from autoscaler.units import Address

ACT, RECOMMEND = "act", "recommend"
SOME_TIME = Duration(least=0.001)
"""For what must take some time."""


class HttpSection(Section):
    """Bounds of memory and time of the data listener: `ProxyOptions`."""

    head_timeout: Annotated[float, SOME_TIME] = default(ProxyOptions, "head_timeout")
    client_keepalive: Annotated[float, SOME_TIME] = default(ProxyOptions, "client_keepalive")
    body_max: Annotated[int, Size()] = default(ProxyOptions, "body_bytes_max")
    body_spool: Annotated[int, Size()] = default(ProxyOptions, "body_spool_bytes")
    body_spool_total: Annotated[int, Size()] = default(ProxyOptions, "body_spool_bytes_total")
    body_timeout: Annotated[float, Duration()] = default(ProxyOptions, "body_timeout")
    body_rate_min: Annotated[int, Size(least=1)] = default(ProxyOptions, "body_rate_min")
    linger: Annotated[float, Duration()] = default(ProxyOptions, "linger")
    read_buffer: Annotated[int, Size(least=1024)] = default(ProxyOptions, "read_buffer_bytes")
    connect_timeout: Annotated[float, SOME_TIME] = default(ProxyOptions, "connect_timeout")
    upstream_keepalive: Annotated[float, Duration()] = default(ProxyOptions, "upstream_keepalive")
    retries_max: Annotated[int, Count()] = default(ProxyOptions, "retries_max")


class DrainSection(Section):
    """How the program lets go of its clients: `ProxyOptions`."""

    grace: Annotated[float, Duration()] = default(ProxyOptions, "drain_grace")
    max: Annotated[float, Duration()] = default(ProxyOptions, "drain_max")


class RouteSection(Section):
    """Which requests go to the pool: `RouteOptions`."""

    prefix: Annotated[str, UrlPath()] = default(RouteOptions, "prefix")


class TimeoutsSection(Section):
    """How long an answer may take: `RouteOptions`."""

    first_byte: Annotated[float | None, OrNone(SOME_TIME)] = default(RouteOptions, "first_byte_timeout")
    idle: Annotated[float | None, OrNone(SOME_TIME)] = default(RouteOptions, "idle_timeout")


class QueueSection(Section):
    """Who may wait, and how long: `QueueOptions`, `RouteOptions`."""

    requests_max: Annotated[int, Count()] = default(QueueOptions, "requests_max")
    bytes_max: Annotated[int, Size()] = default(QueueOptions, "bytes_max")
    wait_max: Annotated[float, SOME_TIME] = default(RouteOptions, "wait_timeout")


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


class OpenAIServer(Section):
    """`model_servers.openai`."""

    kind: Literal["openai"]
    model: Annotated[str | None, OrNone(Text())] = default(OpenAI, "model")
    probe_timeout: Annotated[float, SOME_TIME] = default(OpenAI, "timeout")


class ObjectiveSection(Section):
    """What the user wants: `Objective`."""

    wait: Annotated[float, Duration()] = default(Objective, "wait_seconds")
    quantile: Annotated[float, Fraction()] = default(Objective, "wait_quantile")
    utilization_low: Annotated[float, Fraction()] = default(Objective, "utilization_low")
    utilization_high: Annotated[float, Fraction()] = default(Objective, "utilization_high")


class ScalingSection(Section):
    """How the fleet may be moved: `DecisionPolicy`."""

    replicas_min: Annotated[int, Count()] = default(DecisionPolicy, "replicas_min")
    replicas_max: Annotated[int, Count(least=1)] = default(DecisionPolicy, "replicas_max")
    step_up_max: Annotated[int | None, OrNone(Count(least=1))] = default(DecisionPolicy, "step_up_max")
    step_down_max: Annotated[int | None, OrNone(Count(least=1))] = default(DecisionPolicy, "step_down_max")
    scale_down_hold: Annotated[float, Duration()] = default(DecisionPolicy, "scale_down_hold")
    catch_up_time: Annotated[float, SOME_TIME] = default(DecisionPolicy, "catch_up_time")
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

    def options(self, slots_per_replica: int) -> StaticOptions:
        """Return the options of the platform."""
        return StaticOptions(slots_per_replica=slots_per_replica, **self.model_dump(exclude={"kind"}))

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
    ready_timeout: Annotated[float, SOME_TIME] = default(LocalOptions, "ready_timeout")
    probe_interval: Annotated[float, SOME_TIME] = default(LocalOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(LocalOptions, "probe_failures")
    hang_timeout: Annotated[float, SOME_TIME] = default(LocalOptions, "hang_timeout")
    restart_backoff_initial: Annotated[float, SOME_TIME] = default(LocalOptions, "restart_backoff_initial")
    restart_backoff_max: Annotated[float, SOME_TIME] = default(LocalOptions, "restart_backoff_max")
    drain_max: Annotated[float, Duration()] = default(LocalOptions, "drain_max")
    stop_grace: Annotated[float, Duration()] = default(LocalOptions, "stop_grace")
    cold_start_initial: Annotated[float, SOME_TIME] = default(LocalOptions, "cold_start_initial")
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
    slots_per_replica: Annotated[int, Count(least=1)] = default(LocalOptions, "slots_per_replica")
    queue: QueueSection = QueueSection()
    timeouts: TimeoutsSection = TimeoutsSection()
    objective: ObjectiveSection = ObjectiveSection()
    scaling: ScalingSection = ScalingSection()
    forecast: ForecastSection = ForecastSection()
    platform: Annotated[
        StaticPlatform | LocalPlatform,
        Field(discriminator="kind", examples=["{kind: static, urls: [http://127.0.0.1:9001]}"]),
    ]


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
    drain: DrainSection = DrainSection()
    pools: Annotated[
        dict[str, PoolSection],
        Field(examples=["{main: {platform: {kind: static, urls: [http://127.0.0.1:9001]}}}"]),
    ]
