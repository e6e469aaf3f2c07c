"""How large a batch may be: what its model takes, and what the objective allows.

A batch closes when a slot frees: until then whoever arrives may still join, so batching never makes anybody
wait, and a request that finds a replica free starts at once, alone. The larger a batch, the longer it takes,
s(n) = alpha + beta n, and the longer waits who comes just after it has begun. So a batch is held to the rows
with which it ends within `service_time_max`, by the line that is learned for each bucket and replica
(`learned_line`), and shared with a replica that is free soon (`batch_share`).
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

from autoscaler.dispatch.batch_share import rows_to_take
from autoscaler.dispatch.learned_line import LearnedLine
from autoscaler.dispatch.row_rate import RowRate
from autoscaler.domain import Mergeable
from autoscaler.queueing.batch_line import BatchLine

SHORTEST = 0.001
"""No limit of a batch's time is shorter [s]: an objective may ask that nobody waits at all."""

_LINES_MAX = 1024
"""So many lines are remembered, those used last [1]."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What bounds a batch beside its model."""

    service_time_max: float = inf
    """A batch shall take no longer [s]; who just missed it waits as long. Infinity: its model alone says how
    many rows there are in one."""

    def __post_init__(self) -> None:
        if not self.service_time_max > 0:
            raise ValueError(f"need service_time_max > 0, got {self.service_time_max}")


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that runs."""

    merge: Mergeable
    rows: int
    replica_id: str
    began_at: float


class BatchLimits:
    """Learns how long batches take on each replica; says how many rows the next one may have."""

    def __init__(self, options: BatchOptions) -> None:
        self._options = options
        self._lines: OrderedDict[tuple[Hashable, str], LearnedLine] = OrderedDict()
        """By bucket and replica; of all replicas together under an empty name."""
        self._running: dict[int, _Call] = {}
        self._rate = RowRate()

    def arrived(self, merge: Mergeable, now: float) -> None:
        """A request that can be merged is at the door."""
        self._rate.arrived(merge.rows, now)

    def rows(self, merge: Mergeable, replica_id: str, waiting: int, now: float) -> int:
        """Return how many rows the next batch of a replica may have, of `waiting` that there are to take."""
        most = self._most(merge, replica_id)
        own = self._line(merge.bucket, replica_id)
        next_free = self._free_next(merge, replica_id, now)
        if own is None or next_free is None:
            return most
        other, remaining = next_free
        return rows_to_take(waiting, most, own, other, remaining, self._rate.at(now))

    def capacity(self, rows_max: int) -> int:
        """Return how many of `rows_max` rows a call may have at full load, by the line that was learned last.

        Unlike `rows` it is not held to what was tried already: it is what is counted with, not what is done.
        """
        line = next(reversed(self._lines.values())).line if self._lines else None
        if line is None or line.beta <= 0 or self._options.service_time_max == inf:
            return rows_max
        allowed = (self._options.service_time_max - line.alpha) / line.beta
        return min(rows_max, max(1, round(allowed)))

    def began(self, call: int, merge: Mergeable, rows: int, replica_id: str, now: float) -> None:
        """A call of so many rows has begun."""
        self._running[call] = _Call(merge, rows, replica_id, now)

    def over(self, call: int, now: float, *, served: bool) -> None:
        """A call is over; if it was `served` in full, learn how long so many rows take."""
        ended = self._running.pop(call, None)
        if ended is None or not served:
            return
        for replica_id in (ended.replica_id, ""):
            self._learned(ended.merge.bucket, replica_id).observe(ended.rows, now - ended.began_at, now)

    def _most(self, merge: Mergeable, replica_id: str) -> int:
        """What the objective allows, by what is known of the replica, or of all."""
        if self._options.service_time_max == inf:
            return merge.rows_max
        own = self._lines.get((merge.bucket, replica_id))
        if own is None or own.line is None:
            own = self._lines.get((merge.bucket, ""))
        return 1 if own is None else own.largest_within(self._options.service_time_max, merge.rows_max)

    def _line(self, bucket: Hashable, replica_id: str) -> BatchLine | None:
        own = self._lines.get((bucket, replica_id))
        if own is not None and own.line is not None:
            return own.line
        together = self._lines.get((bucket, ""))
        return None if together is None else together.line

    def _free_next(self, merge: Mergeable, replica_id: str, now: float) -> tuple[BatchLine, float] | None:
        """Which other replica ends its call first, and in what time [s]; its line for this bucket."""
        soonest: tuple[BatchLine, float] | None = None
        for call in self._running.values():
            line = self._line(call.merge.bucket, call.replica_id) if call.replica_id != replica_id else None
            if line is None:
                continue
            remaining = max(0.0, call.began_at + float(line.alpha + line.beta * call.rows) - now)
            if soonest is None or remaining < soonest[1]:
                next_line = self._line(merge.bucket, call.replica_id)
                if next_line is not None:
                    soonest = (next_line, remaining)
        return soonest

    def _learned(self, bucket: Hashable, replica_id: str) -> LearnedLine:
        key = (bucket, replica_id)
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= _LINES_MAX:
                self._lines.popitem(last=False)
            line = self._lines[key] = LearnedLine()
        self._lines.move_to_end(key)
        return line
