"""An answer as a PNG, by matplotlib: waits above, cost below, over the size of the fleet."""

from pathlib import Path
from typing import Any

from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from autoscaler.plan.curve import Curve
from autoscaler.plan.words import duration

INK, QUIET, GRID = "#22303c", "#6b7c8c", "#e4e9ee"
MEAN, P95, P99 = "#9ec9e2", "#4a90c4", "#17466e"
BAND, OBJECTIVE, CHOSEN = "#3a9d6e", "#c8553d", "#e09f3e"
_SIZE, _DPI = (9.6, 6.2), 160


def write_png(curve: Curve, path: Path) -> None:
    """Draw `curve` into `path`."""
    figure = Figure(
        figsize=_SIZE,
        dpi=_DPI,
        facecolor="white",
        layout=ConstrainedLayoutEngine(hspace=0.04, h_pad=0.09, w_pad=0.12),
    )
    FigureCanvasAgg(figure)
    waits, cost = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.25])
    _draw_waits(waits, curve)
    _draw_cost(cost, curve)
    for axes in (waits, cost):
        _plain(axes)
        axes.axvspan(*curve.band, color=BAND, alpha=0.11, linewidth=0, zorder=0)
        axes.axvline(curve.recommended.servers, color=CHOSEN, linewidth=1.4, zorder=1)
    figure.suptitle(curve.title, x=0.012, ha="left", fontsize=15, fontweight="bold", color=INK)
    waits.set_title(curve.subtitle, loc="left", fontsize=10, color=QUIET, pad=10)
    figure.savefig(path, format="png")


def _draw_waits(axes: Any, curve: Curve) -> None:
    for name, color in (("p99", P99), ("p95", P95), ("mean", MEAN)):
        waits = [getattr(row, f"wait_{name}") for row in curve.rows]
        axes.plot(curve.servers, waits, color=color, linewidth=2.2, label=name, marker="o", markersize=3.6)
    axes.set_ylim(-0.02 * curve.wait_top, curve.wait_top)
    axes.set_xlim(*curve.reach)
    _draw_objective(axes, curve)
    axes.annotate(
        "band",
        (curve.band[0], 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(5, -13),
        textcoords="offset points",
        color=BAND,
        fontsize=9,
    )
    _mark(axes, curve)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda seconds, _: duration(seconds)))
    axes.set_ylabel("Wait for a slot", color=QUIET)
    axes.legend(
        loc="upper right",
        ncols=3,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        bbox_to_anchor=(1.0, 1.11),
        handlelength=1.4,
    )


def _draw_objective(axes: Any, curve: Curve) -> None:
    """Draw a line at the objective, or say at the top that it lies above."""
    if curve.objective_in_sight:
        axes.axhline(curve.wait_seconds, color=OBJECTIVE, linewidth=1.3, linestyle=(0, (5, 3)))
    axes.annotate(
        curve.objective if curve.objective_in_sight else f"{curve.objective} lies above",
        (1.0, min(curve.wait_seconds, curve.wait_top)),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-4, -12),
        textcoords="offset points",
        ha="right",
        color=OBJECTIVE,
        fontsize=9,
    )


def _mark(axes: Any, curve: Curve) -> None:
    """Mark the recommended size on the curve, with words on the side that has room."""
    row, left = curve.recommended, curve.mark_on_the_left
    axes.plot(
        [row.servers], [curve.mark_height], "o", markersize=9, color=CHOSEN, markeredgecolor="white", zorder=5
    )
    axes.annotate(
        curve.mark,
        (row.servers, curve.mark_height),
        xytext=(-14 if left else 14, 26),
        textcoords="offset points",
        ha="right" if left else "left",
        fontsize=10,
        fontweight="bold",
        color=INK,
        bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": CHOSEN, "linewidth": 1.0},
        zorder=6,
    )


def _draw_cost(axes: Any, curve: Curve) -> None:
    costs = [row.cost_per_hour for row in curve.rows]
    axes.plot(curve.servers, costs, color=INK, linewidth=1.8)
    axes.plot(
        [curve.recommended.servers],
        [curve.recommended.cost_per_hour],
        "o",
        markersize=8,
        color=CHOSEN,
        markeredgecolor="white",
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel(curve.cost_unit, color=QUIET)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(4))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.6g}"))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(12, integer=True))
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("Servers", color=QUIET)


def _plain(axes: Any) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=QUIET, length=0, labelsize=9)
