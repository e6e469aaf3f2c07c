"""An answer as a page, by plotly: the picture of `picture_png` with every size to be read off.

The page holds the library that draws it, so that it needs no network.
"""

from html import escape
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from autoscaler.plan.answer import Row
from autoscaler.plan.curve import Curve
from autoscaler.plan.words import duration, percent

INK, QUIET, GRID = "#22303c", "#6b7c8c", "#e4e9ee"
MEAN, P95, P99 = "#9ec9e2", "#4a90c4", "#17466e"
BAND, OBJECTIVE, CHOSEN = "#3a9d6e", "#c8553d", "#e09f3e"
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>body {{ margin: 0 }}</style></head>
<body>{drawn}</body>
</html>
"""
_FEW = 20
"""So many sizes have a tick each."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def write_html(curve: Curve, path: Path) -> None:
    """Write `curve` as a page into `path`."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.7, 0.3], vertical_spacing=0.07)
    _add_waits(figure, curve)
    _add_cost(figure, curve)
    figure.add_vrect(
        *curve.band,
        fillcolor=BAND,
        opacity=0.12,
        line_width=0,
        annotation_text="band",
        annotation_position="top left",
        annotation_font_color=BAND,
        layer="below",
        row=1,
    )
    figure.add_vrect(*curve.band, fillcolor=BAND, opacity=0.12, line_width=0, layer="below", row=2)
    figure.add_vline(curve.recommended.servers, line_color=CHOSEN, line_width=1.5)
    _add_objective(figure, curve)
    _set_out(figure, curve)
    config = {"displaylogo": False, "responsive": True}
    drawn = figure.to_html(
        full_html=False, include_plotlyjs=True, config=config, default_height="min(100vh, 50rem)"
    )
    path.write_text(_PAGE.format(title=escape(curve.title), drawn=drawn), encoding="utf-8")


def _add_waits(figure: go.Figure, curve: Curve) -> None:
    for name, color in (("p99", P99), ("p95", P95), ("mean", MEAN)):
        waits = [getattr(row, f"wait_{name}") for row in curve.rows]
        figure.add_scatter(
            x=curve.servers,
            y=[min(wait, 1e9) for wait in waits],
            name=name,
            mode="lines+markers",
            line={"color": color, "width": 2.5},
            marker={"size": 5},
            customdata=[duration(wait) for wait in waits],
            hovertemplate="%{customdata}",
            row=1,
            col=1,
        )
    left = curve.mark_on_the_left
    _add_mark(figure, curve, curve.mark_height, row=1)
    figure.add_annotation(
        x=curve.recommended.servers,
        y=curve.mark_height,
        text=f"<b>{curve.mark}</b>",
        showarrow=False,
        xanchor="right" if left else "left",
        xshift=-14 if left else 14,
        yshift=30,
        bgcolor="white",
        bordercolor=CHOSEN,
        borderpad=5,
        font={"color": INK},
        row=1,
        col=1,
    )


def _add_objective(figure: go.Figure, curve: Curve) -> None:
    """Draw a line at the objective, or say at the top that it lies above."""
    if curve.objective_in_sight:
        figure.add_hline(
            curve.wait_seconds, line_color=OBJECTIVE, line_dash="dash", line_width=1.3, row=1, col=1
        )
    figure.add_annotation(
        x=1.0,
        xref="x domain",
        xanchor="right",
        y=min(curve.wait_seconds, curve.wait_top),
        yanchor="top",
        text=curve.objective if curve.objective_in_sight else f"{curve.objective} lies above",
        showarrow=False,
        font={"color": OBJECTIVE},
        row=1,
        col=1,
    )


def _add_cost(figure: go.Figure, curve: Curve) -> None:
    figure.add_scatter(
        x=curve.servers,
        y=[row.cost_per_hour for row in curve.rows],
        name=curve.cost_unit,
        mode="lines",
        line={"color": INK, "width": 2},
        showlegend=False,
        customdata=[_told(row) for row in curve.rows],
        hovertemplate="%{y:,.6~g} · %{customdata}",
        row=2,
        col=1,
    )
    _add_mark(figure, curve, curve.recommended.cost_per_hour, row=2)


def _add_mark(figure: go.Figure, curve: Curve, height: float, row: int) -> None:
    figure.add_scatter(
        x=[curve.recommended.servers],
        y=[height],
        mode="markers",
        marker={"size": 13, "color": CHOSEN, "line": {"color": "white", "width": 2}},
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
        row=row,
        col=1,
    )


def _told(row: Row) -> str:
    return f"{percent(row.utilization)} busy, {percent(row.probability_of_wait)} wait"


def _set_out(figure: go.Figure, curve: Curve) -> None:
    title = f"<b>{curve.title}</b><br><span style='font-size:14px;color:{QUIET}'>{curve.subtitle}</span>"
    figure.update_layout(
        title={"text": title, "x": 0.03, "xanchor": "left", "y": 0.955, "font": {"size": 22, "color": INK}},
        font={"family": _FONT, "size": 13, "color": QUIET},
        plot_bgcolor="white",
        paper_bgcolor="white",
        hovermode="x unified",
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
        margin={"l": 80, "r": 40, "t": 110, "b": 50},
    )
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    few = curve.servers[-1] - curve.servers[0] <= _FEW
    figure.update_xaxes(showgrid=False, zeroline=False, range=curve.reach, dtick=1 if few else None)
    ticks = _ticks(curve.wait_top)
    figure.update_yaxes(
        title_text="Wait for a slot",
        range=[-0.02 * curve.wait_top, curve.wait_top],
        tickvals=ticks,
        ticktext=[duration(tick) for tick in ticks],
        row=1,
    )
    figure.update_yaxes(title_text=curve.cost_unit, tickformat=",", nticks=5, rangemode="tozero", row=2)
    figure.update_xaxes(title_text="Servers", tickformat=",", row=2)


def _ticks(top: float) -> list[float]:
    """Return some round values up to `top` [s]."""
    power = 10.0 ** len(str(int(top))) / 100 if top >= 1 else 10.0 ** -(len(f"{1 / top:.0f}"))
    step = next(size * power for size in (1, 2, 2.5, 5, 10, 20, 25, 50, 100) if size * power * 6 >= top)
    return [step * number for number in range(int(top / step) + 1)]
