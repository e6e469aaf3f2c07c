"""How long starts take here, from the decision to readiness: measured, and kept for the next run."""

import math
from collections import deque
from pathlib import Path

import msgspec
import structlog

from autoscaler.kept_file import keep

MEASURED_MAX = 50
"""Older starts are forgotten: models, disks and caches change."""

START_MAX = 30 * 86400.0
"""No start takes longer [s]; a longer one in the file is damage."""

log = structlog.get_logger(__name__)


class ColdStarts:
    """The last measured starts as a distribution.

    Parameters
    ----------
    initial : float
        What a start is taken to last until one has been measured [s].
    path : Path or None
        Where they are kept; None keeps them in memory only.
    """

    def __init__(self, initial: float, path: Path | None = None) -> None:
        self._initial, self._path = initial, path
        self._measured: deque[float] = deque(_read(path) if path else (), maxlen=MEASURED_MAX)

    def __repr__(self) -> str:
        return f"<ColdStarts n={len(self._measured)} mean={self.mean:.3g}s p90={self.p90:.3g}s>"

    def measured(self, duration: float) -> None:
        """Take in one start that succeeded and took `duration` [s]."""
        self._measured.append(duration)
        if self._path:
            keep(self._path, msgspec.json.encode(list(self._measured)))

    @property
    def is_measured(self) -> bool:
        """Whether any start has been."""
        return bool(self._measured)

    @property
    def mean(self) -> float:
        """Mean start [s]."""
        return math.fsum(self._measured) / len(self._measured) if self._measured else self._initial

    @property
    def p90(self) -> float:
        """0.9 quantile [s]: the least measured start that is no shorter than 90 % of them."""
        if not self._measured:
            return self._initial
        # In whole numbers: 0.9 * 10 in floating point may come out above 9.
        rank = -(-9 * len(self._measured) // 10)
        return sorted(self._measured)[rank - 1]


def _read(path: Path) -> list[float]:
    """Return what was kept and can be true; nothing if there is none, or if it cannot be read."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=list[float])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        log.warning("measured cold starts cannot be read; measuring anew", path=str(path), error=str(error))
        return []
    possible = [duration for duration in kept if 0 < duration <= START_MAX]
    if len(possible) < len(kept):
        log.warning(
            "measured cold starts that cannot be are dropped", path=str(path), count=len(kept) - len(possible)
        )
    return possible
