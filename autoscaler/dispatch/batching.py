"""How large a batch may be: what its model takes, and what the objective allows.

A batch closes when a slot frees: until then whoever arrives may still join, so batching never makes anybody
wait, and a request that finds a replica free starts at once, alone. The larger a batch, the longer it takes,
s(n) = alpha + beta n, and the longer waits who comes just after it has begun. So a batch is held to the rows
with which it ends within `service_time_max`, by the line that is learned for each bucket (`learned_line`).
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

from autoscaler.dispatch.learned_line import LearnedLine
from autoscaler.domain import Mergeable

SHORTEST = 0.001
"""No limit of a batch's time is shorter [s]: an objective may ask that nobody waits at all."""

_BUCKETS_MAX = 256
"""Lines of so many buckets are remembered, those used last [1]."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What bounds a batch beside its model."""

    service_time_max: float = inf
    """A batch shall take no longer [s]; who just missed it waits as long. Infinity: its model alone says how
    many rows there are in one."""

    def __post_init__(self) -> None:
        if not self.service_time_max > 0:
            raise ValueError(f"need service_time_max > 0, got {self.service_time_max}")


class BatchLimits:
    """Learns how long batches take; says how many rows the next one may have."""

    def __init__(self, options: BatchOptions) -> None:
        self._options = options
        self._lines: OrderedDict[Hashable, LearnedLine] = OrderedDict()
        self._running: dict[int, tuple[Mergeable, int]] = {}

    def rows(self, merge: Mergeable) -> int:
        """Return how many rows a batch of this bucket may have."""
        if self._options.service_time_max == inf:
            return merge.rows_max
        line = self._lines.get(merge.bucket)
        return 1 if line is None else line.largest_within(self._options.service_time_max, merge.rows_max)

    def began(self, call: int, merge: Mergeable, rows: int) -> None:
        """A call of so many rows has begun."""
        self._running[call] = (merge, rows)

    def over(self, call: int) -> tuple[Mergeable, int] | None:
        """Return what was merged in a call that is over, and its rows; None if it is not known."""
        return self._running.pop(call, None)

    def learn(self, merge: Mergeable, rows: int, seconds: float, now: float) -> None:
        """A call of so many rows took `seconds` [s]."""
        line = self._lines.get(merge.bucket)
        if line is None:
            if len(self._lines) >= _BUCKETS_MAX:
                self._lines.popitem(last=False)
            line = self._lines[merge.bucket] = LearnedLine()
        self._lines.move_to_end(merge.bucket)
        line.observe(rows, seconds, now)
