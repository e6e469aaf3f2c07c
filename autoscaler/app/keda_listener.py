"""The listener that KEDA asks, where it scales a pool."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog

from autoscaler.platforms.keda import Keda, KedaServer, KedaServerOptions
from autoscaler.ports import Platform

log = structlog.get_logger(__name__)


async def start_keda(
    undo: AsyncExitStack, options: KedaServerOptions, platforms: Mapping[str, Platform]
) -> None:
    """Listen until `undo` if any of the platforms, by the name of their pool, is KEDA's."""
    asked = {name: platform for name, platform in platforms.items() if isinstance(platform, Keda)}
    if asked:
        server = KedaServer(options, asked)
        await server.start()
        undo.push_async_callback(server.stop)
        log.info("listening for KEDA", at=f"{options.host}:{server.port}")
