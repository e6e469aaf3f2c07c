"""What the program runs with: the options of every part, made and checked, in one value."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autoscaler.control_loop import ControlOptions
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.domain import Objective
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.scaling import DecisionPolicy
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


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """One pool: who is served, by what, and how well."""

    name: str
    route: RouteOptions
    queue: QueueOptions
    server: ServerOptions
    slots_per_replica: int
    """Requests one replica serves at a time [1]."""
    objective: Objective
    policy: DecisionPolicy
    platform: StaticOptions | LocalOptions


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
