"""The last statuses of one pool, as columns of a chart on a common time axis.

A forecast is drawn at the moment it is *for*: what was predicted at t for one lead time L ahead stands at
t + L. So the dotted line left of "now" can be compared with what came, and right of it is the future.
The axis moves by whole columns, and its length grows in steps, so that the picture does not shimmer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoscaler.dashboard.chart import sampled
from autoscaler.telemetry.status import PoolStatus, Status

SPANS = (60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 420.0, 600.0)
"""Lengths of the past that the axis may show [s]."""
_FUTURE_STEP = 3
"""The future is given columns by this many at a time, as the lead time wavers a little."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Columns over calendar time: `edges` has one more entry than there are columns [s]."""

    edges: tuple[float, ...]
    now_column: int
    """The column that holds the present."""
    past: float
    """How far back it reaches [s]."""

    @classmethod
    def over(cls, history: Sequence[Status], lead_time: float, columns: int) -> "TimeAxis":
        """Lay `columns` over the history and, if it is known, one lead time [s] beyond."""
        now = history[-1].wall_time
        watched = now - history[0].wall_time
        past = next((span for span in SPANS if span >= watched), SPANS[-1])
        wanted = 0.0 if math.isnan(lead_time) else lead_time / past * columns
        future_columns = min(columns // 3, math.ceil(wanted / _FUTURE_STEP) * _FUTURE_STEP)
        past_columns = columns - future_columns
        step = past / past_columns
        end_of_past = (math.floor(now / step) + 1) * step
        edges = tuple(end_of_past + step * (column - past_columns) for column in range(columns + 1))
        return cls(edges, past_columns - 1, past)

    @property
    def future(self) -> float:
        """How far ahead it reaches [s]."""
        return self.edges[-1] - self.edges[self.now_column + 1]

    def halved(self) -> list[float]:
        """Return the edges of half columns."""
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        return [edge for low, high in pairs for edge in (low, (low + high) / 2)] + [self.edges[-1]]


def pool_of(status: Status, name: str) -> PoolStatus | None:
    """Return the pool of that name, or None."""
    return next((pool for pool in status.pools if pool.name == name), None)


def measured(
    history: Sequence[Status], pool: str, read: Callable[[PoolStatus], float]
) -> list[tuple[float, float]]:
    """Return (time, value) of what a pool measured."""
    return [
        (status.wall_time, read(found)) for status in history if (found := pool_of(status, pool)) is not None
    ]


def predicted(
    history: Sequence[Status], pool: str, read: Callable[[PoolStatus], float]
) -> list[tuple[float, float]]:
    """Return (time it was for, value) of what was forecast for a pool."""
    points = [
        (status.wall_time + found.forecast.lead_time, read(found))
        for status in history
        if (found := pool_of(status, pool)) is not None and not math.isnan(found.forecast.lead_time)
    ]
    return sorted(points)


def future_only(values: list[float], axis: TimeAxis) -> list[float]:
    """Blank out what is past."""
    return [value if column > axis.now_column else math.nan for column, value in enumerate(values)]


def columns_of(points: Sequence[tuple[float, float]], axis: TimeAxis) -> list[float]:
    """Sample points into the columns of the axis."""
    return sampled(points, axis.edges)


def half_columns_of(points: Sequence[tuple[float, float]], axis: TimeAxis) -> list[float]:
    """Sample points into half columns, for a dotted line."""
    return sampled(points, axis.halved())
