"""The keys that say where the demand of a pool is read, by a program that does not measure it itself."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from autoscaler.scaling.doors import MergeOptions
from autoscaler.settings.platform_rules import base
from autoscaler.settings.rules import each_once, in_order, in_plain_text, no_use, not_empty, without
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import (
    Choice,
    Duration,
    FilePath,
    Labels,
    ObjectName,
    OrNone,
    PortName,
    Text,
    Url,
    YesNo,
)
from autoscaler.settings.written import Rule, Written
from autoscaler.telemetry.demand.options import (
    DemandOptions,
    DoorPlaces,
    KubernetesDoors,
    ListedDoors,
    NamedDoors,
    PrometheusDemand,
    ServiceRecordDoors,
)
from autoscaler.telemetry.demand.reader import ReaderOptions
from autoscaler.tls import ClientTls

_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""
_FILE = OrNone(FilePath())
_WITH_HTTPS = "write https: there, or remove it"
SIDECARS, PROXIES = "sidecars", "proxies"
"""Doors that have servers of their own each, or that all stand before the same ones."""


def _patience_within_a_reading(demand: Written) -> None:
    """Find a `timeout` by which one that is silent holds up the next reading of all the others."""
    if demand.has("timeout"):
        in_order("timeout", "interval")(demand)


class _MergeSection(Section):
    """How long what is not heard is believed to go on: `MergeOptions`."""

    carry: Annotated[float, _SOME_TIME] = default(MergeOptions, "carry")
    forget: Annotated[float, _SOME_TIME] = default(MergeOptions, "forget")
    token_file: Annotated[Path | None, _FILE] = default(ReaderOptions, "token_file")
    ca: Annotated[Path | None, _FILE] = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        in_order("carry", "forget"),
        in_order("interval", "carry"),
        _patience_within_a_reading,
    )

    @property
    def merge(self) -> MergeOptions:
        """Return the options of merging."""
        return MergeOptions(self.carry, self.forget)

    @property
    def tls(self) -> ClientTls | None:
        """Return how whoever is asked is checked."""
        return None if self.ca is None else ClientTls(ca=self.ca)


class _DoorsSection(_MergeSection):
    """How doors are read: `ReaderOptions`; and whether each has servers of its own."""

    doors: Annotated[str, Choice((SIDECARS, PROXIES))] = SIDECARS
    interval: Annotated[float, _SOME_TIME] = default(ReaderOptions, "interval")
    timeout: Annotated[float, _SOME_TIME] = default(ReaderOptions, "timeout")
    look_interval: Annotated[float, _SOME_TIME] = default(ReaderOptions, "look_interval")

    def read_at(self, place: DoorPlaces) -> DemandOptions:
        """Return all options, of doors that are found at `place`."""
        reader = ReaderOptions(self.interval, self.timeout, self.look_interval, self.token_file, self.tls)
        return DemandOptions(place, reader, self.merge, is_shared=self.doors == PROXIES)


class ListDemand(_DoorsSection):
    """Sidecars at fixed addresses: `ListedDoors`."""

    kind: Literal["list"]
    urls: Annotated[tuple[Annotated[str, Url()], ...], Field(examples=["[http://10.0.0.5:8082]"])]

    RULES = (
        *_DoorsSection.RULES,
        not_empty("urls", "one admin listener or more, such as [http://10.0.0.5:8082]"),
        each_once("urls", "each is one door; remove it", base),
        *no_use(("look_interval",), lambda _: "and a list is never looked up", "remove it"),
        *no_use(("ca",), in_plain_text("urls"), _WITH_HTTPS),
    )

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        return self.read_at(ListedDoors(self.urls))


def _one_name(demand: Written) -> None:
    url, srv = demand["url"], demand["srv"]
    if (url is None) == (srv is None):
        fault = f"got {'neither' if url is None else 'both'} of url and srv"
        remedy = (
            "write url: http://NAME:8082 for the addresses of a name, or srv: _admin._tcp.NAME for a "
            "service record"
        )
        demand.note((), fault, "one of them", remedy)


class DnsDemand(_DoorsSection):
    """Sidecars that the DNS names: `NamedDoors` by their addresses, `ServiceRecordDoors` by SRV."""

    kind: Literal["dns"]
    url: Annotated[str | None, OrNone(Url())] = None
    srv: Annotated[str | None, OrNone(Text())] = None
    https: Annotated[bool, YesNo()] = default(ServiceRecordDoors, "is_https")

    RULES = (
        *_DoorsSection.RULES,
        in_order("look_interval", "forget"),
        _one_name,
        *no_use(("https",), without("srv"), "write https: in url, and remove it"),
        *no_use(("ca",), in_plain_text("url"), _WITH_HTTPS),
    )

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        if self.url is not None:
            return self.read_at(NamedDoors(self.url))
        return self.read_at(ServiceRecordDoors(self.srv or "", self.https))


class KubernetesDemand(_DoorsSection):
    """Sidecars in the pods behind a Service: `KubernetesDoors`."""

    kind: Literal["kubernetes"]
    service: Annotated[str, ObjectName(), Field(examples=["chat"])]
    port: Annotated[str | None, OrNone(PortName())] = default(KubernetesDoors, "port")
    namespace: Annotated[str | None, OrNone(ObjectName())] = default(KubernetesDoors, "namespace")
    https: Annotated[bool, YesNo()] = default(KubernetesDoors, "is_https")
    kubeconfig: Annotated[Path | None, _FILE] = default(KubernetesDoors, "kubeconfig")
    context: Annotated[str | None, OrNone(Text())] = default(KubernetesDoors, "context")

    RULES = (*_DoorsSection.RULES, in_order("look_interval", "forget"))

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        place = KubernetesDoors(
            self.service, self.port, self.namespace, self.https, self.kubeconfig, self.context
        )
        return self.read_at(place)


class PrometheusSection(_MergeSection):
    """Sidecars that a Prometheus scrapes: `PrometheusDemand`."""

    kind: Literal["prometheus"]
    carry: Annotated[float, Duration(least=1.0)] = default(MergeOptions, "carry")
    url: Annotated[str, Url(), Field(examples=["http://prometheus:9090"])]
    window: Annotated[float, Duration(least=4.0)] = default(PrometheusDemand, "window")
    selector: Annotated[str, Labels()] = default(PrometheusDemand, "selector")
    interval: Annotated[float, _SOME_TIME] = default(PrometheusDemand, "interval")
    timeout: Annotated[float, _SOME_TIME] = default(PrometheusDemand, "timeout")

    RULES = (
        *_MergeSection.RULES,
        in_order("interval", "window"),
        *no_use(("ca",), in_plain_text("url"), _WITH_HTTPS),
    )

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        own = set(PrometheusSection.model_fields) - set(_MergeSection.model_fields) - {"kind"}
        place = PrometheusDemand(**self.model_dump(include=own), token_file=self.token_file, tls=self.tls)
        return DemandOptions(place, merge=self.merge)


DemandSection = ListDemand | DnsDemand | KubernetesDemand | PrometheusSection
"""Any of them."""
