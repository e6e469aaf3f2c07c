"""Where the demand of a pool is read, for a program that does not measure it itself."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from autoscaler.scaling.doors import MergeOptions
from autoscaler.telemetry.demand.reader import ReaderOptions
from autoscaler.tls import ClientTls

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class ListedDoors:
    """Doors whose addresses are fixed."""

    urls: tuple[str, ...]
    """Base URL of the admin listener of each."""

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("urls is empty; name at least one admin listener, such as http://10.0.0.5:8082")
        if twice := sorted({url for url in self.urls if self.urls.count(url) > 1}):
            raise ValueError(f"urls: {twice[0]!r} is listed twice; each is one door")


@dataclass(frozen=True, slots=True)
class NamedDoors:
    """Doors behind one name: every address that it has is one."""

    url: str
    """Base URL of the admin listeners, with the name as its host."""


@dataclass(frozen=True, slots=True)
class ServiceRecordDoors:
    """Doors that a service record (SRV) of the DNS names, with their ports."""

    name: str
    """Of the record, as `_admin._tcp.chat.default.svc.cluster.local`."""
    is_https: bool = False
    """Whether the admin listeners speak HTTPS."""


@dataclass(frozen=True, slots=True)
class KubernetesDoors:
    """Doors in the ready pods behind a Service."""

    service: str
    """Its EndpointSlices say which pods there are."""
    port: str | None = None
    """Of the admin listeners, by name or number; None if the Service has one port only."""
    namespace: str | None = None
    """Where it is; None is the namespace of this program's own pod, or of the kubeconfig's context."""
    is_https: bool = False
    """Whether the admin listeners speak HTTPS."""
    kubeconfig: Path | None = None
    """File that says how the API is reached; None is the service account of this pod, or else what kubectl
    would use."""
    context: str | None = None
    """Context of the kubeconfig; None is its current one."""


@dataclass(frozen=True, slots=True)
class PrometheusDemand:
    """Doors that a Prometheus scrapes; it is asked instead of them."""

    url: str
    """Its address, with a path in front of `/api/v1` if it has one."""
    window: float = 60.0
    """Rates are over so long [s]; four scrapes or more. Longer is calmer, and later."""
    selector: str = ""
    """More labels, in PromQL, that the metrics of the doors have and no others, such as `job="chat"`. With
    it, a target that is down (`up` is 0) is known to be missing."""
    interval: float = 5.0
    """Between two questions [s]."""
    timeout: float = 5.0
    """A question without an answer within it has failed [s]."""
    token_file: Path | None = None
    """File with a token that is sent as `Authorization: Bearer`; None for none."""
    tls: ClientTls | None = None
    """How it is checked, if its URL is https; None takes what is usual."""

    def __post_init__(self) -> None:
        for name in ("window", "interval", "timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")
        if any(sign in _QUOTED.sub("", self.selector) for sign in "{}\n"):
            raise ValueError(f'selector: got {self.selector!r}; write labels only, such as job="chat"')


DoorPlaces = ListedDoors | NamedDoors | ServiceRecordDoors | KubernetesDoors


@dataclass(frozen=True, slots=True)
class DemandOptions:
    """Where, and how patiently."""

    place: DoorPlaces | PrometheusDemand
    reader: ReaderOptions = field(default_factory=ReaderOptions)
    """How doors are read; of no use to a Prometheus."""
    merge: MergeOptions = field(default_factory=MergeOptions)
    """How long what is not heard is believed to go on."""
    is_shared: bool = False
    """Whether the doors are proxies that all stand before the same replicas, so that they are told which
    there are, and how many slots of each are theirs. Otherwise each has servers of its own."""
