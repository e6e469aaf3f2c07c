"""Small files that serve the next start of the program: measured starts, records of replicas, events."""

from pathlib import Path

import structlog

log = structlog.get_logger(__name__)


def keep(path: Path, content: bytes) -> None:
    """Write `content` so that a reader, or a killed program, meets the old file or the new one, never half.

    The folder is made if it is not there, for somebody may have removed it while this program runs.
    A disk that takes nothing is told and borne: what is kept serves the next start, not this one.
    """
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        log.error("state cannot be written", path=str(path), error=str(error))
