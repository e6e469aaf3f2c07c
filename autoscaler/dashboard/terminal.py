"""The live terminal view: a pure function from the last statuses to a page.

The page fills the terminal it is drawn on, from 80 x 24 up. Most of it is one chart: what arrived,
and what had been forecast for that moment one lead time before; to the right of *now* stands what is
forecast. Below come the fleet, how busy it is against the band, waits against the objective, the queue
and the last decision in words. A taller terminal adds the fleet and its occupancy over time.

Calm: the page changes by whole columns, and colour says only good (green), on its way (amber), broken
(red).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from autoscaler.dashboard.bars import (
    QUIET,
    band_bar,
    replica_blocks,
    sparkline,
    wait_bar,
    wait_that_counts,
)
from autoscaler.dashboard.charts import AREA, arrivals_chart, fleet_chart, occupancy_chart
from autoscaler.dashboard.past import measured, pool_of
from autoscaler.dashboard.pool_words import (
    disagreements_in_words,
    facts,
    gpus_in_words,
    no_decision_in_words,
    objective_in_words,
    occupancy_in_words,
    queue_in_words,
    replicas_in_words,
    requests_in_words,
    signals_in_words,
    substitutions_in_words,
    tokens_in_words,
    troubles_in_words,
    waits_in_words,
)
from autoscaler.dashboard.words import count, duration
from autoscaler.telemetry.status import PoolStatus, Status

_LABEL_WIDTH = 11
_WORDS_WIDTH = 38
_CHART_HEIGHT_MIN = 6
_TALL = 22
"""Rows that the charts must have before the fleet over time is drawn as well."""
_OTHERS_MAX = 6


def view(history: Sequence[Status], pool: str | None = None, note: str = "") -> RenderableType:
    """Draw the state of the program, and of one pool in full.

    Parameters
    ----------
    history : sequence of Status
        Oldest first, at least one; the last is the present.
    pool : str, optional
        The pool to show in full; the first if not given, or if there is none of that name.
    note : str
        One line of words below the title: what a demonstration emulates, or that no answer comes.
    """
    return _Page(history, pool, note)


def plain_lines(status: Status, only: str | None = None) -> list[str]:
    """Tell the state of each pool, or of `only` that one, in one line, for a log or a pipe."""
    clock = _clock(status.wall_time)
    shown = [pool for pool in status.pools if only in (None, pool.name)]
    return [f"{clock} {pool.name}  {'  '.join(facts(pool))}" for pool in shown]


@dataclass(frozen=True, slots=True)
class _Page:
    history: Sequence[Status]
    pool: str | None
    note: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        size = options.update(width=options.max_width - 2, height=options.height or console.size.height)
        yield Padding(Group(*self._parts(console, size)), (0, 1))

    def _parts(self, console: Console, size: ConsoleOptions) -> list[RenderableType]:
        """Lay out the page; the charts get what height the rest leaves."""
        status, width = self.history[-1], size.max_width
        if not status.pools:
            return [_title(status, "no pools", self.note)]
        pool = pool_of(status, self.pool or "") or status.pools[0]
        others = [other for other in status.pools if other is not pool]
        above = _title(status, pool.name, self.note)
        below = [_bars(self.history, pool, width), *_others(others), _decision(pool, console, width)]
        used = sum(len(console.render_lines(part, size.update(height=None))) for part in [above, *below])
        room = max(_CHART_HEIGHT_MIN, (size.height or 0) - used - 1)
        return [above, *_charts(self.history, pool, width, room), Text(), *below]


def _charts(history: Sequence[Status], pool: PoolStatus, width: int, height: int) -> list[RenderableType]:
    """Draw arrivals alone, or with the fleet and its occupancy below if there is room."""
    if height < _TALL:
        return [arrivals_chart(history, pool, width, height)]
    lower, half = height * 2 // 5, (width - 3) // 2
    side_by_side = Table.grid(padding=(0, 3, 0, 0))
    side_by_side.add_row(fleet_chart(history, pool, half, lower), occupancy_chart(history, pool, half, lower))
    return [arrivals_chart(history, pool, width, height - lower - 1), Text(), side_by_side]


def _title(status: Status, name: str, note: str) -> RenderableType:
    left = Text.assemble((f" {name} ", "bold reverse"), (f"  autoscaler {status.version}", QUIET))
    right = Text(f"up {duration(status.uptime)}   {_clock(status.wall_time)}", QUIET)
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(left, right)
    return Group(line, Text(note, QUIET, no_wrap=True, overflow="ellipsis"))


def _bars(history: Sequence[Status], pool: PoolStatus, width: int) -> RenderableType:
    """Draw the fleet, its occupancy, the wait and the queue: a name, a bar and words each."""
    bar = width - _LABEL_WIDTH - _WORDS_WIDTH - 2
    objective, occupancy = pool.objective, pool.occupancy.last_interval
    name, wait = wait_that_counts(pool)
    depths = [depth for _, depth in measured(history, pool.name, lambda at: float(at.queue_depth))]
    rows = [
        ("replicas", replica_blocks(pool.replicas, bar), replicas_in_words(pool)),
        (
            "occupancy",
            band_bar(occupancy, objective.utilization_low, objective.utilization_high, bar),
            occupancy_in_words(pool),
        ),
        (f"wait {name}", wait_bar(wait, objective.wait_seconds, bar), waits_in_words(pool)),
        ("queue", sparkline(depths, bar, AREA), queue_in_words(pool)),
        ("objective", objective_in_words(pool), None),
        ("requests", requests_in_words(pool), None),
    ]
    if pool.troubles:
        rows.append(("trouble", troubles_in_words(pool), None))
    if not math.isnan(pool.tokens.rate_out):
        rows.append(("tokens", tokens_in_words(pool), None))
    if pool.disagreements:
        rows.append(("ledger", disagreements_in_words(pool), None))
    if substitutions := substitutions_in_words(pool):
        rows.append(("shortage", substitutions, None))
    if pool.signals:
        rows.append(("signals", signals_in_words(pool), None))
    if gpus := history[-1].gpus:
        rows.append(("GPUs busy", gpus_in_words(gpus), None))
    lines = []
    for label, graphic, words in rows:
        line = Text.assemble((f"{label:<{_LABEL_WIDTH}}", QUIET), graphic, no_wrap=True, overflow="ellipsis")
        if words is not None:
            line.pad_right(_LABEL_WIDTH + bar + 2 - line.cell_len)
            line.append_text(words)
        lines.append(line)
    return Group(*lines)


def _decision(pool: PoolStatus, console: Console, width: int) -> RenderableType:
    """Frame the last decision; the frame has the same height for all but the longest sentences."""
    if pool.last_decision is None:
        words, when = Text(no_decision_in_words(pool), QUIET), ""
    else:
        words, when = Text(pool.last_decision.sentence), f" at {_clock(pool.last_decision.wall_time)}"
    rows = max(3 if width < 110 else 2, len(words.wrap(console, width - 4)))
    return Panel(
        words,
        box=box.ROUNDED,
        border_style=QUIET,
        title=f"[default]last decision[/default]{when}",
        title_align="left",
        height=rows + 2,
        width=width,
    )


def _others(pools: Sequence[PoolStatus]) -> list[RenderableType]:
    """Tell the other pools in a line each."""
    lines: list[RenderableType] = [
        Text.assemble(
            (f"{pool.name:<{_LABEL_WIDTH - 1}.{_LABEL_WIDTH - 1}} ", "bold"),
            ("  ".join(facts(pool)[:-1]), QUIET),
            no_wrap=True,
            overflow="ellipsis",
        )
        for pool in pools[:_OTHERS_MAX]
    ]
    if len(pools) > _OTHERS_MAX:
        lines.append(Text(f"{'':<{_LABEL_WIDTH}}and {count(len(pools) - _OTHERS_MAX, 'more pool')}", QUIET))
    return [Text(), *lines] if lines else []


def _clock(wall_time: float) -> str:
    return datetime.fromtimestamp(wall_time).strftime("%H:%M:%S")
