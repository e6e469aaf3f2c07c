"""The options of a sidecar, from the settings that a file gives."""

from autoscaler.app.sidecar_options import SidecarOptions, SidecarPool
from autoscaler.platforms.static import StaticOptions
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.settings import PoolSettings, Settings
from autoscaler.settings.model_server import server_maker
from autoscaler.settings.tenants_file import load_tenants
from autoscaler.sharing.told_fleet import ToldOptions
from autoscaler.watched_files import signature


def sidecar_options(settings: Settings) -> SidecarOptions:
    """Return what a sidecar needs of the settings.

    Raises
    ------
    ValueError
        If they are not of a file that was loaded for a sidecar.
    SettingsError
        If the file of tenants cannot be used.
    """
    keys_file = settings.tenants.keys_file
    seen = signature([] if keys_file is None else [keys_file])  # before it is read
    return SidecarOptions(
        proxy=settings.proxy,
        grpc=settings.grpc,
        tenants=settings.tenants,
        pools=tuple(_pool(pool) for pool in settings.pools.values()),
        admin=settings.admin,
        book=TenantBook() if keys_file is None else load_tenants(keys_file, frozenset(settings.pools)),
        book_seen=seen,
        admin_token_file=settings.admin_access.token_file,
        admin_tls=settings.admin_access.tls,
    )


def _pool(pool: PoolSettings) -> SidecarPool:
    if not isinstance(pool.platform, StaticOptions | ToldOptions):
        raise ValueError(f"a sidecar serves servers that run already, or are told of, got {pool.platform}")
    return SidecarPool(
        name=pool.name,
        route=pool.route,
        queue=pool.queue,
        dispatch=pool.dispatch,
        objective=pool.objective,
        servers=pool.platform,
        make_server=server_maker(pool.server, pool.route.tls, grpc_tls=pool.grpc_tls),
        model=pool.server.model,
        models=pool.server.models,
        auto_slots=pool.auto_slots,
        batching=pool.server.batching,
        speaks_grpc=pool.speaks_grpc,
        grpc_tls=pool.grpc_tls,
        state_dir=pool.state_dir,
    )
