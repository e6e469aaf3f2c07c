"""Makes the options of every part from a file that was found right."""

from pathlib import Path

from autoscaler.control_loop import ControlOptions
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.domain import Objective
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.scaling import DecisionPolicy
from autoscaler.settings.schema import ACT, FileSection, LocalPlatform, PoolSection
from autoscaler.settings.settings import PoolSettings, ServerOptions, Settings


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
        drain_grace=file.drain.grace,
        drain_max=file.drain.max,
    )


def _pool(name: str, pool: PoolSection, state_dir: Path) -> PoolSettings:
    platform = _platform(pool, state_dir)
    return PoolSettings(
        name=name,
        route=RouteOptions(
            prefix=pool.route.prefix,
            wait_timeout=pool.queue.wait_max,
            first_byte_timeout=pool.timeouts.first_byte,
            idle_timeout=pool.timeouts.idle,
        ),
        queue=QueueOptions(requests_max=pool.queue.requests_max, bytes_max=pool.queue.bytes_max),
        server=ServerOptions(**pool.server.model_dump()),
        slots_per_replica=pool.slots_per_replica,
        objective=Objective(
            utilization_low=pool.objective.utilization_low,
            utilization_high=pool.objective.utilization_high,
            wait_seconds=pool.objective.wait,
            wait_quantile=pool.objective.quantile,
        ),
        policy=_policy(pool, platform),
        platform=platform,
    )


def _platform(pool: PoolSection, state_dir: Path) -> StaticOptions | LocalOptions:
    if isinstance(pool.platform, LocalPlatform):
        return pool.platform.options(pool.slots_per_replica, state_dir)
    return pool.platform.options(pool.slots_per_replica)


def _policy(pool: PoolSection, platform: StaticOptions | LocalOptions) -> DecisionPolicy:
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
