"""Follows the file of tenants without reading it: a short-lived process does, whenever it has changed.

What it takes to check such a file, and to say what is wrong with it, is larger than a whole sidecar. A file
that cannot be used changes nothing: who was let in before is let in. A process that fails for another reason
is run again, for the change may be a key that was taken away.
"""

import asyncio
import pickle
from collections.abc import Iterable
from pathlib import Path

import structlog

from autoscaler.errors import UsageError
from autoscaler.proxy.tenants.book import TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.same_python import same_python
from autoscaler.watched_files import INTERVAL, Signature, signature

_READER = "autoscaler.settings.tenants_process"
_FILE_IS_WRONG = 2
"""Exit code of the reader."""
_READS_WITHIN = 30.0
"""A reader that takes longer is ended [s]."""
_AGAIN_AFTER = 20.0
"""Pause after one that failed for another reason than the file [s]."""

log = structlog.get_logger(__name__)


async def follow_tenants(path: Path, pools: Iterable[str], gate: TenantGate, seen: Signature) -> None:
    """Keep `gate` informed of who is in the file at `path`, until cancelled.

    `seen` tells the state in which it was read last.
    """
    pools = tuple(pools)
    while True:
        pause, now = INTERVAL, signature([path])
        if now != seen:
            try:
                gate.replace(await _read(path, pools))
            except UsageError as error:
                _warn("changed files cannot be used; what was read before goes on", path, error)
                seen = now
            except (OSError, EOFError, pickle.UnpicklingError) as error:  # TimeoutError is an OSError
                _warn("changed files cannot be read now; tried again", path, error)
                pause = _AGAIN_AFTER
            else:
                log.info("files have changed and were read", files=str(path))
                seen = now
        await asyncio.sleep(pause)


async def _read(path: Path, pools: Iterable[str]) -> TenantBook:
    """Return who is in the file.

    Raises UsageError if it cannot be used; OSError, EOFError or UnpicklingError if the reader failed.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *same_python(), "-m", _READER, str(path), *pools, stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(_READS_WITHIN):
            told, why = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = why.decode("utf-8", "replace").strip()
    if process.returncode == _FILE_IS_WRONG:
        raise UsageError(said)
    if process.returncode:
        raise OSError(f"the reader ended with {process.returncode}: {said[-500:]}")
    book: TenantBook = pickle.loads(told)
    return book


def _warn(event: str, path: Path, error: Exception) -> None:
    log.warning(event, files=str(path), why=str(error) or type(error).__name__)
