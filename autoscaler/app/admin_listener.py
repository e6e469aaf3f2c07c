"""The admin listener of any of the programs, with its token and certificate."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from aiohttp import web

from autoscaler.dashboard.admin import AdminSources, start_admin
from autoscaler.dashboard.admin_token import AdminToken
from autoscaler.tls import ServerTls, server_context, watch
from autoscaler.units import Address
from autoscaler.watched_files import WatchedFiles, look_now_and_then

_CLOSES_WITHIN = 2.0
"""Who is in the middle of a question, or reads no answer, holds the end of the program up so long [s]."""


async def open_admin(
    undo: AsyncExitStack,
    address: Address,
    sources: AdminSources,
    token_file: Path | None,
    tls: ServerTls | None,
    watched: Sequence[WatchedFiles] = (),
) -> None:
    """Listen until `undo`; follow its files as they change, and those that are `watched` beside them."""
    token = None if token_file is None else AdminToken(token_file)
    context = None if tls is None else server_context(tls)
    admin = await start_admin(address.host, address.port, sources, token, context)
    undo.push_async_callback(_close, admin)
    looking = asyncio.create_task(look_now_and_then([*watched, watch(tls, context)]))
    undo.callback(looking.cancel)


async def _close(admin: web.AppRunner) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSES_WITHIN):
            await admin.cleanup()
