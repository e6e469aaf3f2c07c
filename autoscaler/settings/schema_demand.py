"""The keys that say where the demand of a pool is read, by a program that does not measure it itself."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from autoscaler.scaling.doors import MergeOptions
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import Duration, FilePath, OrNone, Text, Url, YesNo
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


class _MergeSection(Section):
    """How long what is not heard is believed to go on: `MergeOptions`."""

    carry: Annotated[float, _SOME_TIME] = default(MergeOptions, "carry")
    forget: Annotated[float, _SOME_TIME] = default(MergeOptions, "forget")
    token_file: Annotated[Path | None, _FILE] = default(ReaderOptions, "token_file")
    ca: Annotated[Path | None, _FILE] = None

    @property
    def merge(self) -> MergeOptions:
        """Return the options of merging."""
        return MergeOptions(self.carry, self.forget)

    @property
    def tls(self) -> ClientTls | None:
        """Return how whoever is asked is checked."""
        return None if self.ca is None else ClientTls(ca=self.ca)

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise ValueError if the options do not go together."""
        _ = self.options


class _DoorsSection(_MergeSection):
    """How doors are read: `ReaderOptions`."""

    interval: Annotated[float, _SOME_TIME] = default(ReaderOptions, "interval")
    timeout: Annotated[float, _SOME_TIME] = default(ReaderOptions, "timeout")
    look_interval: Annotated[float, _SOME_TIME] = default(ReaderOptions, "look_interval")

    @property
    def place(self) -> DoorPlaces:
        """Return where the doors are."""
        raise NotImplementedError

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        reader = ReaderOptions(self.interval, self.timeout, self.look_interval, self.token_file, self.tls)
        return DemandOptions(self.place, reader, self.merge)


class ListDemand(_DoorsSection):
    """Sidecars at fixed addresses: `ListedDoors`."""

    kind: Literal["list"]
    urls: Annotated[tuple[Annotated[str, Url()], ...], Field(examples=["[http://10.0.0.5:8082]"])]

    @property
    def place(self) -> ListedDoors:
        """Return where the doors are."""
        return ListedDoors(self.urls)


class DnsDemand(_DoorsSection):
    """Sidecars that the DNS names: `NamedDoors` by their addresses, `ServiceRecordDoors` by SRV."""

    kind: Literal["dns"]
    url: Annotated[str | None, OrNone(Url())] = None
    srv: Annotated[str | None, OrNone(Text())] = None
    https: Annotated[bool, YesNo()] = default(ServiceRecordDoors, "is_https")

    @property
    def place(self) -> NamedDoors | ServiceRecordDoors:
        """Return where the doors are."""
        if self.url is not None and self.srv is None:
            return NamedDoors(self.url)
        if self.srv is not None and self.url is None:
            return ServiceRecordDoors(self.srv, self.https)
        raise ValueError(
            f"got {'neither' if self.url is None else 'both'} of url and srv; write url: http://NAME:8082 "
            "for the addresses of a name, or srv: _admin._tcp.NAME for a service record"
        )


class KubernetesDemand(_DoorsSection):
    """Sidecars in the pods behind a Service: `KubernetesDoors`."""

    kind: Literal["kubernetes"]
    service: Annotated[str, Text(), Field(examples=["chat"])]
    port: Annotated[str | None, OrNone(Text())] = default(KubernetesDoors, "port")
    namespace: Annotated[str | None, OrNone(Text())] = default(KubernetesDoors, "namespace")
    https: Annotated[bool, YesNo()] = default(KubernetesDoors, "is_https")
    kubeconfig: Annotated[Path | None, _FILE] = default(KubernetesDoors, "kubeconfig")
    context: Annotated[str | None, OrNone(Text())] = default(KubernetesDoors, "context")

    @property
    def place(self) -> KubernetesDoors:
        """Return where the doors are."""
        return KubernetesDoors(
            self.service, self.port, self.namespace, self.https, self.kubeconfig, self.context
        )


class PrometheusSection(_MergeSection):
    """Sidecars that a Prometheus scrapes: `PrometheusDemand`."""

    kind: Literal["prometheus"]
    url: Annotated[str, Url(), Field(examples=["http://prometheus:9090"])]
    window: Annotated[float, Duration(least=1.0)] = default(PrometheusDemand, "window")
    selector: Annotated[str, Text(least=0)] = default(PrometheusDemand, "selector")
    interval: Annotated[float, _SOME_TIME] = default(PrometheusDemand, "interval")
    timeout: Annotated[float, _SOME_TIME] = default(PrometheusDemand, "timeout")

    @property
    def options(self) -> DemandOptions:
        """Return all options."""
        own = set(PrometheusSection.model_fields) - set(_MergeSection.model_fields) - {"kind"}
        place = PrometheusDemand(**self.model_dump(include=own), token_file=self.token_file, tls=self.tls)
        return DemandOptions(place, merge=self.merge)


DemandSection = ListDemand | DnsDemand | KubernetesDemand | PrometheusSection
"""Any of them."""
