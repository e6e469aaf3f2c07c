"""What a sidecar runs with: little, and of types that load little.

It is made from the settings by a process that has all of them in memory, and handed to one that has not
(see `cli.sidecar`); so nothing here may import `autoscaler.settings`, or mathematics.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.domain import Objective
from autoscaler.platforms.static import StaticOptions
from autoscaler.ports import ModelServer
from autoscaler.proxy.batch.options import BatchingOptions
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.options import TenantOptions
from autoscaler.sharing.told_fleet import ToldOptions
from autoscaler.tls import ServerTls
from autoscaler.units import Address
from autoscaler.watched_files import Signature


class ClosableServer(ModelServer, Protocol):
    """How the servers of a pool are asked, until it is closed."""

    async def close(self) -> None:
        """Let go of the connections."""


@dataclass(frozen=True, slots=True)
class SidecarPool:
    """One pool: who is served, and by which servers."""

    name: str
    route: RouteOptions
    queue: QueueOptions
    dispatch: DispatchOptions
    objective: Objective
    servers: StaticOptions | ToldOptions
    make_server: Callable[[], ClosableServer]
    """Makes what asks the servers whether they are ready."""
    model: str | None
    models: tuple[str, ...]
    """Names that the model is asked by."""
    auto_slots: SlotOptions | None
    """Slots are asked for or learned, so that they keep this; None: they are set."""
    batching: BatchingOptions | None
    speaks_grpc: bool
    grpc_tls: bool
    state_dir: Path


@dataclass(frozen=True, slots=True)
class SidecarOptions:
    """The whole sidecar."""

    proxy: ProxyOptions
    grpc: GrpcOptions
    tenants: TenantOptions
    pools: tuple[SidecarPool, ...]
    admin: Address
    book: TenantBook = field(default_factory=TenantBook)
    """Who is in the file of tenants; nobody, if there is none."""
    book_seen: Signature = ()
    """State of that file as it was read."""
    admin_token_file: Path | None = None
    admin_tls: ServerTls | None = None
