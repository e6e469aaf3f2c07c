"""Makes the options of every part from a file that was found right."""

from dataclasses import replace
from pathlib import Path

from autoscaler.control_loop import ControlOptions
from autoscaler.dispatch import DispatchOptions
from autoscaler.dispatch.batching import SHORTEST, BatchOptions
from autoscaler.domain import Objective
from autoscaler.platforms.keda.options import KedaServerOptions
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.tenants.options import TenantOptions
from autoscaler.scaling import DecisionPolicy
from autoscaler.settings.schema import ACT, FileSection
from autoscaler.settings.schema_platform import LocalPlatform, StaticPlatform, ToldPlatform
from autoscaler.settings.schema_pool import PoolSection
from autoscaler.settings.schema_remote import PoolFacts
from autoscaler.settings.schema_server import OpenAIServer, TritonServer
from autoscaler.settings.settings import (
    AdminAccess,
    PlatformOptions,
    PoolSettings,
    ServerOptions,
    Settings,
)


def settings_of(file: FileSection) -> Settings:
    """Return the options that `file` asks for."""
    history = Path(file.history)
    state = Path(file.state) if file.state else history.with_suffix(".state")
    return Settings(
        proxy=_proxy(file),
        control=ControlOptions(interval=file.control_interval, actuate=file.mode == ACT),
        pools={name: _pool(name, pool, state / name) for name, pool in file.pools.items()},
        admin=file.admin,
        history=history,
        grpc=_grpc(file),
        tenants=TenantOptions(**file.tenants.model_dump()),
        admin_access=AdminAccess(file.admin_access.token_file, file.admin_access.options),
        leadership=file.leadership.options,
        keda=KedaServerOptions(file.keda.listen.host, file.keda.listen.port, file.keda.options),
    )


def _proxy(file: FileSection) -> ProxyOptions:
    http = file.http
    return ProxyOptions(
        host=file.listen.host,
        port=file.listen.port,
        head_timeout=http.head_timeout,
        client_keepalive=http.client_keepalive,
        body_bytes_max=http.body_max,
        body_spool_bytes=http.body_spool,
        body_spool_bytes_total=http.body_spool_total,
        body_timeout=http.body_timeout,
        body_rate_min=http.body_rate_min,
        linger=http.linger,
        read_buffer_bytes=http.read_buffer,
        connect_timeout=http.connect_timeout,
        upstream_keepalive=http.upstream_keepalive,
        retries_max=http.retries_max,
        target_bytes_max=http.target_max,
        header_bytes_max=http.header_max,
        headers_max=http.headers_max,
        connections_max=http.connections_max,
        connections_per_client_max=http.connections_per_client_max,
        send_timeout=http.send_timeout,
        share_port=http.share_port,
        access_log=http.access_log.options,
        idempotency=http.idempotency.options,
        drain_grace=file.drain.grace,
        drain_max=file.drain.max,
        tls=file.tls.options,
    )


def _grpc(file: FileSection) -> GrpcOptions:
    return GrpcOptions(
        host=file.grpc.listen.host,
        port=file.grpc.listen.port,
        keepalive=file.grpc.keepalive,
        connection_age_max=file.grpc.connection_age_max,
        message_bytes_max=file.grpc.message_max,
        connect_timeout=file.http.connect_timeout,
        retries_max=file.http.retries_max,
        share_port=file.http.share_port,
        drain_grace=file.drain.grace,
        drain_max=file.drain.max,
        tls=file.tls.options,
    )


def _pool(name: str, pool: PoolSection, state_dir: Path) -> PoolSettings:
    platform = _platform(name, pool, state_dir)
    return PoolSettings(
        name=name,
        route=RouteOptions(
            prefix=pool.route.prefix,
            priority_class=pool.route.priority_class,
            urgency_from_clients=pool.route.urgency_from_clients,
            hedge=pool.route.hedge,
            broadcast=pool.route.broadcast,
            affinity=pool.dispatch.affinity.key_options,
            wait_timeout=pool.queue.wait_max,
            first_byte_timeout=pool.timeouts.first_byte,
            idle_timeout=pool.timeouts.idle,
            tls=pool.tls.options,
            reads_tokens=isinstance(pool.server, OpenAIServer),
        ),
        queue=pool.queue.options,
        dispatch=_dispatch(pool),
        server=_server(pool),
        slots_per_replica=_slots(pool),
        auto_slots=pool.auto_slots.options if pool.slots_per_replica is None else None,
        state_dir=state_dir,
        objective=Objective(
            utilization_low=pool.objective.utilization_low,
            utilization_high=pool.objective.utilization_high,
            wait_seconds=pool.objective.wait,
            wait_quantile=pool.objective.quantile,
        ),
        policy=_policy(pool, platform),
        platform=platform,
        grpc_tls=pool.tls.grpc,
        speaks_grpc=_speaks_grpc(pool, platform),
        demand=None if pool.demand is None else pool.demand.options,
        substitute=pool.substitute,
        signals=tuple(section.options(name) for name, section in pool.signals.items()),
    )


def _server(pool: PoolSection) -> ServerOptions:
    server = pool.server
    if not isinstance(server, TritonServer):
        return ServerOptions(**server.model_dump())
    batching = {"batching", "batch_rows_max", "batch_time_max", "batch_check"}
    return ServerOptions(
        **server.model_dump(exclude={"grpc_port", *batching}),
        grpc_port=server.grpc_port,
        batching=server.batching_options,
    )


def _dispatch(pool: PoolSection) -> DispatchOptions:
    """Return the options; a batch shall take no longer than who just missed it may wait."""
    options = replace(pool.dispatch.options(hedges=pool.route.hedge), slots=pool.auto_slots.options)
    if not isinstance(pool.server, TritonServer):
        return options
    time_max = pool.server.batch_time_max or max(pool.objective.wait, SHORTEST)
    return replace(options, batching=BatchOptions(time_max))


def _speaks_grpc(pool: PoolSection, platform: PlatformOptions) -> bool:
    if not isinstance(pool.server, TritonServer):
        return False
    if isinstance(platform, LocalOptions):
        return platform.has_grpc_port
    return pool.server.grpc_port is not None


def _platform(name: str, pool: PoolSection, state_dir: Path) -> PlatformOptions:
    grpc_port = pool.server.grpc_port if isinstance(pool.server, TritonServer) else None
    if isinstance(pool.platform, LocalPlatform):
        return pool.platform.options(_slots(pool), state_dir)
    if isinstance(pool.platform, StaticPlatform):
        return pool.platform.options(_slots(pool), grpc_port)
    if isinstance(pool.platform, ToldPlatform):
        return pool.platform.options
    return pool.platform.options(PoolFacts(name, _slots(pool), state_dir, grpc_port))


def _slots(pool: PoolSection) -> int:
    """Return the slots of a replica [1]; one, as long as they are not found out."""
    return 1 if pool.slots_per_replica is None else pool.slots_per_replica


def _policy(pool: PoolSection, platform: PlatformOptions) -> DecisionPolicy:
    """Return the policy, which asks for no more replicas than the machine has room for."""
    scaling = pool.scaling.model_dump()
    if isinstance(platform, LocalOptions) and platform.places is not None:
        scaling["replicas_max"] = min(platform.places, pool.scaling.replicas_max)
    return DecisionPolicy(
        **scaling,
        forecast_interval=pool.forecast.interval,
        season=pool.forecast.season,
        refit_interval=pool.forecast.refit,
        history_max=pool.forecast.history_max,
    )
