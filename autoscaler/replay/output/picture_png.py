"""A replay as a PNG, by matplotlib: replicas against demand above, the waits of the unluckiest 1 % below.

It shows our controller, a fleet for the peak and the best of the others; the page shows everybody.
"""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from autoscaler.replay.output import page_style as style
from autoscaler.replay.output.standing import Outcome, Standing
from autoscaler.replay.output.traffic_told import Told
from autoscaler.replay.output.verdict import headline
from autoscaler.replay.output.words import wait

_SIZE, _DPI = (10.4, 6.4), 160


def write_png(outcome: Outcome, told: Told, path: Path) -> None:
    """Draw `outcome` into `path`."""
    figure = Figure(
        figsize=_SIZE,
        dpi=_DPI,
        facecolor="white",
        layout=ConstrainedLayoutEngine(hspace=0.05, h_pad=0.09, w_pad=0.12),
    )
    FigureCanvasAgg(figure)
    replicas, waits = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    times = told.times(outcome)
    demand = outcome.standings[0].played[0].windows.offered_load / outcome.stage.scenario.slots_per_replica
    replicas.fill_between(times, demand, step="post", color=style.DEMAND, label="demand", linewidth=0)
    for each, color in _drawn(outcome):
        windows, width = each.played[0].windows, 2.0 if each is outcome.own else 1.2
        replicas.step(
            times, windows.replicas_ready, where="post", color=color, linewidth=width, label=each.name
        )
        drawn = np.maximum(windows.wait_p99, outcome.wait_drawn_least)
        waits.step(times, drawn, where="post", color=color, linewidth=width)
    _set_out(outcome, told, replicas, waits)
    figure.suptitle(headline(outcome), x=0.012, ha="left", fontsize=12.5, fontweight="bold", color=style.INK)
    figure.savefig(path, format="png")


def _drawn(outcome: Outcome) -> list[tuple[Standing, str]]:
    """Return who is drawn in which color, ours last and so on top."""
    colors = {outcome.own: style.OWN, outcome.fixed: style.FIXED}
    drawn = [(each, colors.get(each, style.OTHERS[0])) for each in outcome.compared]
    return drawn[::-1]


def _set_out(outcome: Outcome, told: Told, replicas: Any, waits: Any) -> None:
    for axes in (replicas, waits):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(style.GRID)
        axes.grid(axis="y", color=style.GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(colors=style.QUIET, length=0, labelsize=9)
        axes.margins(x=0.0)
    replicas.set_ylim(bottom=0)
    replicas.set_ylabel("Replicas ready", color=style.QUIET)
    replicas.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize=9, labelcolor=style.INK
    )
    waits.set_yscale("log")
    waits.yaxis.set_major_formatter(ticker.FuncFormatter(lambda seconds, _: wait(seconds)))
    waits.yaxis.set_minor_locator(ticker.NullLocator())
    bound = max(outcome.objective.wait_seconds, outcome.wait_drawn_least)
    waits.axhline(bound, color=style.OBJECTIVE, linewidth=1.3, linestyle=(0, (5, 3)))
    waits.set_ylim(outcome.wait_drawn_least * 0.8, max(waits.get_ylim()[1], 3 * bound))
    waits.set_ylabel("Wait of the unluckiest 1 %", color=style.QUIET)
    if isinstance(told.times(outcome)[0], datetime):
        locator = AutoDateLocator()
        waits.xaxis.set_major_locator(locator)
        waits.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        waits.set_xlabel("hours since the beginning", color=style.QUIET)
