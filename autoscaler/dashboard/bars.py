"""The bars of the terminal view: one row of characters each, readable without colour."""

import math

from rich.text import Text

from autoscaler.telemetry.status import PoolStatus, ReplicasStatus

GOOD, LATE, BAD, QUIET = "#87af87", "#d7af5f", "#d78787", "#808080"
"""Within what is wanted; on its way or beyond it; broken; everything that need not be read first."""

_SPARKS = "▁▂▃▄▅▆▇█"


def replica_blocks(replicas: ReplicasStatus, width: int) -> Text:
    """Draw a block for each replica: ready, starting, wanted but not there yet, draining."""
    missing = max(0, replicas.desired - replicas.ready - replicas.starting)
    kinds = [
        ("█", GOOD, replicas.ready),
        ("▒", LATE, replicas.starting),
        ("·", LATE, missing),
        ("░", QUIET, replicas.draining),
    ]
    total = sum(count for _, _, count in kinds)
    block, gap = next(
        ((b, g) for b, g in ((3, 1), (2, 1), (1, 1), (1, 0)) if total * (b + g) - g <= width), (1, 0)
    )
    text = Text(no_wrap=True)
    for shape, style, count in kinds:
        for _ in range(count):
            text.append(shape * block, style).append(" " * gap)
    if text.cell_len > width + gap:
        text.truncate(width - 1)
        text.append("…", QUIET)
    return text


def band_bar(occupancy: float, low: float, high: float, width: int) -> Text:
    """Draw how busy the slots are, from 0 to 1, with the band marked on it.

    The bar runs inside the band or beyond it; the band's edges stand in it as ┃.
    """
    filled = 0 if math.isnan(occupancy) else round(min(1.0, occupancy) * width)
    edges = (round(low * width), min(width - 1, round(high * width)))
    style = GOOD if low <= occupancy <= high else LATE
    text = Text(no_wrap=True)
    for cell in range(width):
        if cell in edges:
            text.append("┃", "bold")
        elif cell < filled:
            text.append("━", style)
        else:
            text.append(
                "─" if edges[0] < cell < edges[1] else "·", GOOD if edges[0] < cell < edges[1] else QUIET
            )
    return text


def wait_bar(wait: float, objective: float, width: int) -> Text:
    """Draw a wait against the one that is still good, which stands at four fifths of the bar as ┃."""
    mark = max(1, width * 4 // 5)
    known = not math.isnan(wait)
    filled = (
        min(width, round(wait / objective * mark)) if known and objective > 0 else width if wait > 0 else 0
    )
    style = GOOD if known and wait <= objective else LATE
    text = Text(no_wrap=True)
    for cell in range(width):
        if cell == mark:
            text.append("┃", "bold")
        else:
            text.append("━" if cell < filled else "·", style if cell < filled else QUIET)
    return text


def sparkline(values: list[float], width: int, style: str) -> Text:
    """Draw the last `width` values as columns, the highest of them (8 at least) at full height."""
    shown = values[-width:]
    highest = max((value for value in shown if math.isfinite(value)), default=0.0)
    highest = max(highest, float(len(_SPARKS)))  # so that one who waits is not drawn as a crowd
    text = Text(" " * (width - len(shown)), no_wrap=True)
    for value in shown:
        if not value > 0:
            text.append(" " if math.isnan(value) else "▁", QUIET)
        else:
            text.append(_SPARKS[min(7, int(value / highest * 7.999))], style)
    return text


def wait_that_counts(pool: PoolStatus) -> tuple[str, float]:
    """Return the name and the value [s] of the percentile that the objective is about."""
    waits, quantile = pool.waits, pool.objective.wait_quantile
    if quantile <= 0.5:
        return "p50", waits.p50
    return ("p95", waits.p95) if quantile <= 0.95 else ("p99", waits.p99)
