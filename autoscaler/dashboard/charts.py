"""The three charts of the terminal view, each with its legend, scale and time axis."""

import math
from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from autoscaler.dashboard.bars import GOOD, LATE, QUIET
from autoscaler.dashboard.chart import Chart, Line, nice_top
from autoscaler.dashboard.past import (
    TimeAxis,
    columns_of,
    future_only,
    half_columns_of,
    measured,
    predicted,
)
from autoscaler.dashboard.words import duration, percent, rate
from autoscaler.telemetry.status import PoolStatus, Status

AREA, FORECAST = "#5f87af", "#d7af5f"
_GUTTER = 7
"""Columns left of a chart, for its scale."""


def arrivals_chart(history: Sequence[Status], pool: PoolStatus, width: int, height: int) -> RenderableType:
    """Draw what arrived, what had been forecast for then, and what is forecast."""
    forecast = pool.forecast
    axis = TimeAxis.over(history, forecast.lead_time, width - _GUTTER)
    area = columns_of(measured(history, pool.name, lambda at: at.arrival_rate), axis)
    line = half_columns_of(predicted(history, pool.name, lambda at: at.forecast.mean), axis)
    low, high = (
        future_only(columns_of(predicted(history, pool.name, read), axis), axis)
        for read in (lambda at: at.forecast.p10, lambda at: at.forecast.p90)
    )
    legend = Text.assemble(("█ ", AREA), ("arrivals ", "bold"), rate(pool.arrival_rate), no_wrap=True)
    legend.append("   ⠒⠒ ", FORECAST).append("forecast ", "bold").append(rate(forecast.mean))
    if not math.isnan(forecast.lead_time):
        legend.append(f" in {duration(forecast.lead_time)}")
    if not math.isnan(forecast.p10 + forecast.p90):
        legend.append("   ░ ", QUIET).append(f"80 %: {forecast.p10:.3g}–{rate(forecast.p90)}", QUIET)
    chart = Chart(
        area=area,
        area_style=AREA,
        lines=[Line(line, FORECAST)],
        top=nice_top(area, line, high),
        fan_low=low,
        fan_high=high,
    )
    return _framed(legend, chart, axis, height, scale=lambda value: f"{value:.3g}")


def fleet_chart(history: Sequence[Status], pool: PoolStatus, width: int, height: int) -> RenderableType:
    """Draw how many replicas were ready, and how many were wanted."""
    axis = TimeAxis.over(history, math.nan, width - _GUTTER)
    area = columns_of(measured(history, pool.name, lambda at: at.replicas.ready), axis)
    line = half_columns_of(measured(history, pool.name, lambda at: at.replicas.desired), axis)
    legend = Text.assemble(("█ ", GOOD), ("replicas ready", "bold"), ("   ⠒⠒ ", LATE), ("desired", "bold"))
    chart = Chart(area, GOOD, [Line(line, LATE)], top=nice_top(area, line, at_least=4.0))
    return _framed(legend, chart, axis, height, scale=lambda value: f"{value:.3g}")


def occupancy_chart(history: Sequence[Status], pool: PoolStatus, width: int, height: int) -> RenderableType:
    """Draw how busy the slots were, over the band that they should keep to."""
    axis = TimeAxis.over(history, math.nan, width - _GUTTER)
    area = columns_of(measured(history, pool.name, lambda at: at.occupancy.last_interval), axis)
    edges = pool.objective.utilization_low, pool.objective.utilization_high
    legend = Text.assemble(("█ ", AREA), ("occupancy", "bold"), ("   ⠒⠒ ", GOOD), ("band", "bold"))
    chart = Chart(area, AREA, [Line([edge] * 2 * len(area), GOOD) for edge in edges], top=1.0)
    return _framed(legend, chart, axis, height, scale=percent)


def _framed(
    legend: Text, chart: Chart, axis: TimeAxis, height: int, scale: Callable[[float], str]
) -> RenderableType:
    """Put the legend above, the scale to the left and the time below; `height` rows in all."""
    count = (height - 2) // 2 * 2  # even, so that half the scale is the edge of a row
    rows = chart.rows(count)
    marks = {0: scale(chart.top), count // 2: scale(chart.top / 2)}
    lines = [Text.assemble(" " * _GUTTER, legend, no_wrap=True, overflow="ellipsis")]
    for number, row in enumerate(rows):
        mark = marks.get(number, "")
        lines.append(
            Text.assemble(
                (f"{mark:>{_GUTTER - 2}} ", QUIET), ("┤" if mark else "│", QUIET), row, no_wrap=True
            )
        )
    lines.append(Text(" " * (_GUTTER - 1) + "╰" + _time_row(axis), QUIET, no_wrap=True))
    return Group(*lines)


def _time_row(axis: TimeAxis) -> str:
    """Name the ends of the axis and, if it goes on beyond, the present."""
    columns = len(axis.edges) - 1
    row = ["─"] * columns
    _write(row, f" {duration(axis.past)} ago ", begin=1)
    future_columns = columns - axis.now_column - 1
    _write(row, " now ┴" if future_columns else " now ", end=axis.now_column + 1)
    if future_columns >= 10:
        _write(row, f" +{duration(axis.future)} ", end=columns)
    return "".join(row)


def _write(row: list[str], words: str, *, begin: int | None = None, end: int = 0) -> None:
    """Write `words` into a row, from `begin` on, or up to `end`."""
    start = max(0, end - len(words)) if begin is None else begin
    row[start : start + len(words)] = words
