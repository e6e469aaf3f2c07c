"""The figures of a policy as the cells of a table, on a screen or on a page."""

from collections.abc import Callable
from dataclasses import dataclass

from autoscaler.replay.output.standing import BAD_WINDOWS_MAX, Estimate, Outcome, Standing
from autoscaler.replay.output.words import hours, multiple, share, wait

_WAITS = ("wait_p50", "wait_p95", "wait_p99")


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure.

    Attributes
    ----------
    heading, text : str
        What it is, and what it says.
    spread : str
        Half the width of its confidence interval; empty from one seed.
    is_off : bool
        Whether the objective is missed by it.
    """

    heading: str
    text: str
    spread: str = ""
    is_off: bool = False


def cells_of(outcome: Outcome, each: Standing) -> list[Cell]:
    """Return the figures of `each`: what it costs, what it misses, how busy it is."""
    figures = each.figures
    late = figures["objective_met"].mean < outcome.objective.wait_quantile
    bad = figures["bad_windows"].mean > BAD_WINDOWS_MAX
    cells = [_cell("GPU-hours", figures["gpu_hours"], hours), _cell("× bound", each.multiple, multiple)]
    if outcome.price is not None:
        cells.append(Cell("cost", outcome.price.of(figures["gpu_hours"].mean)))
    return [
        *cells,
        _cell("in time", figures["objective_met"], share, late),
        _cell("bad", figures["bad_windows"], share, bad),
        Cell("waits p50/p95/p99", "/".join(_short(wait(figures[name].mean)) for name in _WAITS)),
        Cell("busy", share(figures["utilization"].mean)),
        Cell("in band", share(figures["time_in_band"].mean)),
        Cell("up/down", f"{figures['scale_ups'].mean:,.0f}/{figures['scale_downs'].mean:,.0f}"),
    ]


def _cell(heading: str, figure: Estimate, said: Callable[[float], str], is_off: bool = False) -> Cell:
    known = figure.half_width == figure.half_width  # NaN is not
    return Cell(heading, said(figure.mean), said(figure.half_width) if known else "", is_off)


def _short(told: str) -> str:
    return told.replace(" ", "")
