"""Follows the file of tenants without reading it: a short-lived process does, whenever it has changed.

What it takes to check such a file, and to say what is wrong with it, is larger than a whole sidecar. A file
that cannot be used changes nothing: who was let in before is let in.
"""

import asyncio
import pickle
import sys
from collections.abc import Iterable
from pathlib import Path

import structlog

from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.watched_files import INTERVAL, signature

_READER = "autoscaler.settings.tenants_process"

log = structlog.get_logger(__name__)


async def follow_tenants(path: Path, pools: Iterable[str], gate: TenantGate) -> None:
    """Keep `gate` informed of who is in the file at `path`, until cancelled."""
    seen = signature([path])
    while True:
        await asyncio.sleep(INTERVAL)
        now = signature([path])
        if now == seen:
            continue
        seen = now
        book = await _read(path, pools)
        if book is not None:
            gate.replace(book)
            log.info("files have changed and were read", files=str(path))


async def _read(path: Path, pools: Iterable[str]) -> TenantBook | None:
    """Return who is in the file; None, and say why, if it cannot be used."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", _READER, str(path), *pools, stdout=pipe, stderr=pipe
    )
    try:
        told, why = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        log.warning(
            "changed files cannot be used; what was read before goes on",
            files=str(path),
            why=why.decode("utf-8", "replace").strip(),
        )
        return None
    book: TenantBook = pickle.loads(told)
    return book
