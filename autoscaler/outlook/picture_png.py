"""A study as a PNG, by matplotlib: history and fan above, errors by horizon below."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import dates, ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from autoscaler.outlook.picture import Errors, Picture
from autoscaler.outlook.words import rate

INK, QUIET, GRID = "#22303c", "#6b7c8c", "#e4e9ee"
SAID, FAN = "#e09f3e", "#4a90c4"
COLORS = ("#17466e", "#b9c6d1", "#8fa3b3")
"""Of the chosen forecaster and the naive ones."""
_DATES = ["%Y", "%b %Y", "%a %d %b", "%H:%M", "%H:%M", "%S.%f"]
_DATES_AT_ZERO = ["", "%Y", "%d %b", "%a %d %b", "%H:%M", "%H:%M"]
"""Ticks of years, months, days, hours, minutes, seconds; and those at the start of the next longer unit."""
_SIZE, _DPI = (11.2, 7.0), 160
_SIZE_WITHOUT_ERRORS = (11.2, 4.8)


def write_png(picture: Picture, path: Path) -> None:
    """Draw `picture` into `path`."""
    errors = picture.errors
    figure = Figure(
        figsize=_SIZE if errors else _SIZE_WITHOUT_ERRORS,
        dpi=_DPI,
        facecolor="white",
        layout=ConstrainedLayoutEngine(hspace=0.06, h_pad=0.1, w_pad=0.14),
    )
    FigureCanvasAgg(figure)
    if errors:
        above, below = figure.subplots(2, 1, height_ratios=[2.6, 1])
        _draw_errors(below, errors)
    else:
        above = figure.subplots()
    _draw_demand(above, picture)
    title = figure.suptitle(picture.title, ha="left", fontsize=15, fontweight="bold", color=INK)
    above.set_title(picture.subtitle, loc="left", fontsize=10, color=QUIET, pad=26)
    figure.draw_without_rendering()  # only now it is known where the axes begin
    title.set_x(above.get_position().x0)
    figure.savefig(path, format="png")


def _draw_demand(axes: Any, picture: Picture) -> None:
    _plain(axes)
    told, fan = picture.retold, picture.fan
    for band in told.bands:
        name = picture.retold_name
        axes.fill_between(told.times, band.low, band.high, color=SAID, alpha=0.32, linewidth=0, label=name)
    axes.plot(picture.past_times, picture.past, color=INK, linewidth=0.9, label="came", zorder=3)
    for band in fan.bands:
        label = "50, 80, 95 %" if band is fan.bands[-1] else None
        axes.fill_between(fan.times, band.low, band.high, color=FAN, alpha=0.24, linewidth=0, label=label)
    axes.plot(fan.times, fan.means, color=COLORS[0], linewidth=2.0, label=picture.chosen, zorder=4)
    axes.axvline(picture.now, color=QUIET, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2)
    axes.annotate(
        "now",
        (dates.date2num(picture.now) if isinstance(picture.now, datetime) else picture.now, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(4, -11),
        textcoords="offset points",
        fontsize=9,
        color=QUIET,
    )
    axes.set_ylim(0.0, picture.top)
    axes.margins(x=0.0)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: rate(value) if value else "0"))
    if picture.has_calendar:
        locator = dates.AutoDateLocator(minticks=4, maxticks=12)
        axes.xaxis.set_major_locator(locator)
        form = dates.ConciseDateFormatter(locator, formats=_DATES, zero_formats=_DATES_AT_ZERO)
        form.show_offset = False
        axes.xaxis.set_major_formatter(form)
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(10, integer=True))
        axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("day {x:g}"))
    axes.legend(
        loc="lower left",
        ncols=4,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        bbox_to_anchor=(-0.01, 0.995),
        handlelength=1.3,
        columnspacing=1.6,
    )


def _draw_errors(axes: Any, errors: Errors) -> None:
    _plain(axes)
    places, width = np.arange(len(errors.horizons)), 0.8 / len(errors.lines)
    for number, (name, values) in enumerate(errors.lines.items()):
        heights = [np.nan if value is None else value for value in values]
        left = places + (number - (len(errors.lines) - 1) / 2) * width
        axes.bar(left, heights, width * 0.9, color=COLORS[number], label=name)
    told = zip(errors.horizons, errors.held, strict=True)
    axes.set_xticks(places, [f"{horizon} ahead\n80 % band held {held}" for horizon, held in told])
    axes.set_ylabel("Mean error", color=QUIET)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(4))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: rate(value) if value else "0"))
    axes.tick_params(axis="x", colors=INK)
    axes.legend(
        loc="lower left",
        ncols=3,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        bbox_to_anchor=(-0.01, 0.99),
        handlelength=1.0,
        columnspacing=1.6,
    )


def _plain(axes: Any) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=QUIET, length=0, labelsize=9)
