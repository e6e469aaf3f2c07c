"""The keys of platforms whose replicas are at fixed addresses, or processes of this machine."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.settings.grpc_port import GrpcPort
from autoscaler.settings.platform_rules import LOCAL_RULES, ONE_EACH
from autoscaler.settings.rules import not_empty
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import (
    Command,
    Count,
    Duration,
    Size,
    Text,
    Url,
    YesNo,
)
from autoscaler.sharing.told_fleet import ToldOptions

_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""


class StaticPlatform(Section):
    """Servers that somebody else runs: `StaticOptions`."""

    kind: Literal["static"]
    urls: Annotated[tuple[Annotated[str, Url()], ...], Field(examples=["[http://127.0.0.1:9001]"])]
    probe_interval: Annotated[float, _SOME_TIME] = default(StaticOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(StaticOptions, "probe_failures")
    cold_start_initial: Annotated[float, _SOME_TIME] = default(StaticOptions, "cold_start_initial")

    RULES = (not_empty("urls", "one server or more, such as [http://127.0.0.1:9001]"), ONE_EACH)

    def options(self, slots_per_replica: int, grpc_port: GrpcPort | None = None) -> StaticOptions:
        """Return the options of the platform, whose servers take gRPC at `grpc_port`."""
        return StaticOptions(
            slots_per_replica=slots_per_replica,
            grpc_targets=() if grpc_port is None else tuple(map(grpc_port.target, self.urls)),
            **self.model_dump(exclude={"kind"}),
        )


class ToldPlatform(Section):
    """Servers that a controller tells a proxy of, which shares them with other proxies: `ToldOptions`."""

    kind: Literal["controller"]
    probe_interval: Annotated[float, _SOME_TIME] = default(ToldOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(ToldOptions, "probe_failures")

    @property
    def options(self) -> ToldOptions:
        """Return how they are watched."""
        return ToldOptions(self.probe_interval, self.probe_failures)


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
    ready_timeout: Annotated[float, _SOME_TIME] = default(LocalOptions, "ready_timeout")
    probe_interval: Annotated[float, _SOME_TIME] = default(LocalOptions, "probe_interval")
    probe_failures: Annotated[int, Count(least=1)] = default(LocalOptions, "probe_failures")
    hang_timeout: Annotated[float, _SOME_TIME] = default(LocalOptions, "hang_timeout")
    restart_backoff_initial: Annotated[float, _SOME_TIME] = default(LocalOptions, "restart_backoff_initial")
    restart_backoff_max: Annotated[float, _SOME_TIME] = default(LocalOptions, "restart_backoff_max")
    drain_max: Annotated[float, Duration()] = default(LocalOptions, "drain_max")
    stop_grace: Annotated[float, Duration()] = default(LocalOptions, "stop_grace")
    cold_start_initial: Annotated[float, _SOME_TIME] = default(LocalOptions, "cold_start_initial")
    sleepers_max: Annotated[int, Count()] = default(LocalOptions, "sleepers_max")
    log_max: Annotated[int, Size(least=1)] = default(LocalOptions, "log_bytes_max")

    RULES = LOCAL_RULES

    def options(self, slots_per_replica: int, state_dir: Path) -> LocalOptions:
        """Return the options of the platform, which keeps its records in `state_dir`."""
        return LocalOptions(
            slots_per_replica=slots_per_replica,
            state_dir=state_dir,
            cwd=None if self.cwd is None else Path(self.cwd),
            log_bytes_max=self.log_max,
            **self.model_dump(exclude={"kind", "cwd", "log_max"}),
        )
