"""The keys of one pool: who is served, by what, and how well."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.domain import Objective
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.proxy.options import RouteOptions
from autoscaler.scaling import DecisionPolicy
from autoscaler.settings.pool_rules import POOL_RULES
from autoscaler.settings.rules import each_once, in_order, needs, not_both
from autoscaler.settings.schema_demand import DemandSection
from autoscaler.settings.schema_platform import LocalPlatform, StaticPlatform, ToldPlatform
from autoscaler.settings.schema_queue import DispatchSection, QueueSection
from autoscaler.settings.schema_remote import RemotePlatform
from autoscaler.settings.schema_server import OpenAIServer, PlainHttpServer, TritonServer
from autoscaler.settings.schema_signals import SignalsSection
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import (
    Count,
    Duration,
    FilePath,
    Fraction,
    OrAuto,
    OrNone,
    Share,
    Text,
    UrlPath,
    YesNo,
)
from autoscaler.tls import ClientTls
from autoscaler.units import format_fraction

_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""
_FILE = OrNone(FilePath())


class ServerTlsSection(Section):
    """How the servers of a pool are checked: `ClientTls`."""

    ca: Annotated[Path | None, _FILE] = default(ClientTls, "ca")
    server_name: Annotated[str | None, OrNone(Text())] = default(ClientTls, "server_name")
    certificate: Annotated[Path | None, _FILE] = default(ClientTls, "certificate")
    key: Annotated[Path | None, _FILE] = default(ClientTls, "key")
    grpc: Annotated[bool, YesNo()] = False

    RULES = (needs("certificate", "key"), needs("key", "certificate"))

    @property
    def options(self) -> ClientTls:
        """Return the options."""
        return ClientTls(self.ca, self.server_name, self.certificate, self.key)


class RouteSection(Section):
    """Which requests go to the pool: `RouteOptions`."""

    prefix: Annotated[str, UrlPath()] = default(RouteOptions, "prefix")
    priority_class: Annotated[str, Text()] = default(RouteOptions, "priority_class")
    urgency_from_clients: Annotated[bool, YesNo()] = default(RouteOptions, "urgency_from_clients")
    hedge: Annotated[bool, YesNo()] = default(RouteOptions, "hedge")
    broadcast: tuple[Annotated[str, UrlPath()], ...] = default(RouteOptions, "broadcast")

    RULES = (each_once("broadcast", "remove it"),)


class TimeoutsSection(Section):
    """How long an answer may take: `RouteOptions`."""

    first_byte: Annotated[float | None, OrNone(_SOME_TIME)] = default(RouteOptions, "first_byte_timeout")
    idle: Annotated[float | None, OrNone(_SOME_TIME)] = default(RouteOptions, "idle_timeout")


class AutoSlotsSection(Section):
    """What slots keep where `slots_per_replica` is auto: `SlotOptions`."""

    service_time: Annotated[float | None, OrNone(_SOME_TIME)] = default(SlotOptions, "service_time")
    token_time: Annotated[float | None, OrNone(_SOME_TIME)] = default(SlotOptions, "token_time")
    max: Annotated[int, Count(least=1)] = default(SlotOptions, "slots_max")

    RULES = (not_both("service_time", "token_time", "they are two objectives; give one of them"),)

    @property
    def options(self) -> SlotOptions:
        """Return the options."""
        return SlotOptions(self.service_time, self.token_time, self.max)


class ObjectiveSection(Section):
    """What the user wants: `Objective`."""

    wait: Annotated[float, Duration()] = default(Objective, "wait_seconds")
    quantile: Annotated[float, Fraction()] = default(Objective, "wait_quantile")
    utilization_low: Annotated[float, Fraction()] = default(Objective, "utilization_low")
    utilization_high: Annotated[float, Share()] = default(Objective, "utilization_high")

    RULES = (in_order("utilization_low", "utilization_high", format_fraction, strict=True),)


class ScalingSection(Section):
    """How the fleet may be moved: `DecisionPolicy`."""

    replicas_min: Annotated[int, Count()] = default(DecisionPolicy, "replicas_min")
    replicas_max: Annotated[int, Count(least=1)] = default(DecisionPolicy, "replicas_max")
    step_up_max: Annotated[int | None, OrNone(Count(least=1))] = default(DecisionPolicy, "step_up_max")
    step_down_max: Annotated[int | None, OrNone(Count(least=1))] = default(DecisionPolicy, "step_down_max")
    scale_down_hold: Annotated[float, Duration()] = default(DecisionPolicy, "scale_down_hold")
    catch_up_time: Annotated[float, _SOME_TIME] = default(DecisionPolicy, "catch_up_time")
    edit_hold: Annotated[float, Duration()] = default(DecisionPolicy, "edit_hold")
    service_memory: Annotated[float, _SOME_TIME] = default(DecisionPolicy, "service_memory")

    RULES = (in_order("replicas_min", "replicas_max", str),)


class ForecastSection(Section):
    """What the forecast is made of: `DecisionPolicy`."""

    interval: Annotated[float, _SOME_TIME] = default(DecisionPolicy, "forecast_interval")
    season: Annotated[float, _SOME_TIME] = default(DecisionPolicy, "season")
    refit: Annotated[float, _SOME_TIME] = default(DecisionPolicy, "refit_interval")
    history_max: Annotated[float, _SOME_TIME] = default(DecisionPolicy, "history_max")

    RULES = (
        in_order("interval", "season", factor=2),
        in_order("interval", "refit"),
        in_order("season", "history_max"),
    )


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
    substitute: Annotated[str | None, OrNone(Text())] = None
    platform: Annotated[
        StaticPlatform | LocalPlatform | ToldPlatform | RemotePlatform,
        Field(discriminator="kind", examples=["{kind: static, urls: [http://127.0.0.1:9001]}"]),
    ]

    RULES = (*POOL_RULES, in_order(("objective", "wait"), ("queue", "wait_max")))
