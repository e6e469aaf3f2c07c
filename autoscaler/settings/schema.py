"""The keys of the configuration file, section by section.

A field says what its value looks like (`values`) and where its default comes from: from the options of
the part that it configures, which also say what it means. `build` makes those options.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from autoscaler.control_loop import ControlOptions
from autoscaler.platforms.keda.options import KedaServerOptions
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.tenants.options import TenantOptions
from autoscaler.settings.rules import needs, no_use, without
from autoscaler.settings.schema_http import HttpSection
from autoscaler.settings.schema_leadership import LeadershipSection
from autoscaler.settings.schema_pool import PoolSection
from autoscaler.settings.section import Section, default
from autoscaler.settings.settings import DEFAULT_ADMIN, DEFAULT_HISTORY
from autoscaler.settings.substitute_rules import SUBSTITUTE_RULES
from autoscaler.settings.values import (
    Choice,
    Count,
    Duration,
    FilePath,
    HeaderName,
    Listening,
    OrNone,
    Size,
    Text,
    YesNo,
)
from autoscaler.tls import ServerTls
from autoscaler.units import Address

ACT, RECOMMEND = "act", "recommend"
_FILE = OrNone(FilePath())


class DrainSection(Section):
    """How the program lets go of its clients: `ProxyOptions`."""

    grace: Annotated[float, Duration()] = default(ProxyOptions, "drain_grace")
    max: Annotated[float, Duration()] = default(ProxyOptions, "drain_max")


class ListenerTlsSection(Section):
    """What a listener shows, and whom it lets in: `ServerTls`."""

    certificate: Annotated[Path | None, _FILE] = None
    key: Annotated[Path | None, _FILE] = None
    client_ca: Annotated[Path | None, _FILE] = None

    RULES = (needs("certificate", "key"), needs("key", "certificate"), needs("client_ca", "certificate"))

    @property
    def options(self) -> ServerTls | None:
        """Return the options; None for plain text."""
        if self.certificate is None or self.key is None:
            return None
        return ServerTls(self.certificate, self.key, self.client_ca)


class AdminAccessSection(ListenerTlsSection):
    """Who may read the admin listener: `AdminAccess`."""

    token_file: Annotated[Path | None, _FILE] = None


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

    keys_file: Annotated[Path | None, _FILE] = default(TenantOptions, "keys_file")
    header: Annotated[str | None, OrNone(HeaderName())] = default(TenantOptions, "header")
    required: Annotated[bool, YesNo()] = default(TenantOptions, "required")
    forward_keys: Annotated[bool, YesNo()] = default(TenantOptions, "forward_keys")
    names_max: Annotated[int, Count()] = default(TenantOptions, "names_max")

    RULES = no_use(("forward_keys",), without("keys_file"), "name the file of the keys, or remove it")


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

    RULES = SUBSTITUTE_RULES
