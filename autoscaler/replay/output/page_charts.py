"""The charts of the page, by plotly: what happened when, and every target that a sweep tried.

Time runs in one direction through all panels: replicas against demand, occupancy against the band, waits
against the objective, and where the misses are. The legend turns a policy on and off in all of them.
"""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from autoscaler.replay.output import page_style as style
from autoscaler.replay.output.lineup import FIXED
from autoscaler.replay.output.standing import BAD_WINDOWS_MAX, Outcome, Standing
from autoscaler.replay.output.traffic_told import Times, Told
from autoscaler.replay.output.words import hours, share, wait

_PANELS = (250, 170, 200)
"""Heights of replicas, occupancy and waits [px]."""
_STRIP, _GAP, _TOP, _BOTTOM = 24, 62, 90, 46
_WAIT_TICKS = (1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0)
_MISSED = [
    [0.0, "#eef3f0"],
    [0.0001, "#f7e3bd"],
    [0.05, "#eeb76a"],
    [0.0501, "#dd7b4f"],
    [0.3, "#c8553d"],
    [1.0, "#7d1d12"],
]
"""Colors of a share of requests that missed; more than 5 % of a window is what makes it bad."""
_CONFIG = {"displayModeBar": False, "responsive": True}


def colors_of(outcome: Outcome) -> dict[str, str]:
    """Return the color of each policy that is shown."""
    others = iter(style.OTHERS * (1 + len(outcome.shown) // len(style.OTHERS)))
    known = {FIXED: style.FIXED}
    return {
        each.name: style.OWN if each is outcome.own else known.get(each.contender.family) or next(others)
        for each in outcome.shown
    }


def time_chart(outcome: Outcome, told: Told) -> str:
    """Draw everything over time; as HTML, with the library that draws it."""
    shown = outcome.shown
    heights = [*_PANELS, _STRIP * len(shown) + 8]
    inner = sum(heights) + _GAP * (len(heights) - 1)
    figure = make_subplots(
        rows=len(heights),
        cols=1,
        shared_xaxes=True,
        row_heights=[height / sum(heights) for height in heights],
        vertical_spacing=_GAP / inner,
    )
    times = told.times(outcome)
    _add_demand(figure, outcome, times)
    colors = colors_of(outcome)
    for each in shown:
        _add_policy(figure, outcome, each, times, colors[each.name])
    _add_band(figure, outcome)
    _add_objective(figure, outcome)
    _add_misses(figure, shown, times)
    _set_out(figure, outcome, told, times, inner)
    return str(figure.to_html(full_html=False, include_plotlyjs=True, config=_CONFIG))


def _add_demand(figure: go.Figure, outcome: Outcome, times: Times) -> None:
    windows = outcome.standings[0].played[0].windows
    figure.add_scatter(
        x=times,
        y=np.round(windows.offered_load / outcome.stage.scenario.slots_per_replica, 3),
        name="demand",
        mode="lines",
        line={"width": 0, "shape": "hv"},
        fill="tozeroy",
        fillcolor=style.DEMAND,
        hovertemplate="%{y:.1f}",
        row=1,
        col=1,
    )


def _add_policy(figure: go.Figure, outcome: Outcome, each: Standing, times: Times, color: str) -> None:
    windows = each.played[0].windows
    at_first = each in outcome.compared
    line = {"color": color, "width": 2.4 if each is outcome.own else 1.4, "shape": "hv"}
    waits = np.maximum(windows.wait_p99, outcome.wait_drawn_least)
    panels = (
        (np.round(windows.replicas_ready, 2), None, "%{y:.1f}"),
        (np.round(windows.occupancy, 4), None, "%{y:.0%}"),
        (waits, [wait(value) for value in np.nan_to_num(windows.wait_p99)], "%{customdata}"),
    )
    for row, (values, said, template) in enumerate(panels, start=1):
        figure.add_scatter(
            x=times,
            y=values,
            name=each.name,
            legendgroup=each.name,
            showlegend=row == 1,
            visible=True if at_first else "legendonly",
            mode="lines",
            line=line,
            opacity=1.0 if row == 1 or each is outcome.own else 0.75,
            customdata=said,
            hovertemplate=template,
            row=row,
            col=1,
        )


def _add_band(figure: go.Figure, outcome: Outcome) -> None:
    wanted = outcome.objective
    figure.add_hrect(
        wanted.utilization_low,
        wanted.utilization_high,
        fillcolor=style.BAND,
        opacity=0.16,
        line_width=0,
        layer="below",
        row=2,
        col=1,
    )


def _add_objective(figure: go.Figure, outcome: Outcome) -> None:
    figure.add_hline(
        max(outcome.objective.wait_seconds, outcome.wait_drawn_least),
        line_color=style.OBJECTIVE,
        line_dash="dash",
        line_width=1.4,
        row=3,
        col=1,
    )


def _add_misses(figure: go.Figure, shown: tuple[Standing, ...], times: Times) -> None:
    missed = [1 - np.nan_to_num(each.played[0].windows.met, nan=1.0) for each in shown]
    figure.add_heatmap(
        x=times,
        y=[each.name for each in shown],
        z=[np.round(each, 4) for each in missed],
        zmin=0.0,
        zmax=1.0,
        colorscale=_MISSED,
        showscale=False,
        ygap=3,
        customdata=[[share(value) for value in each] for each in missed],
        hovertemplate="%{y}, %{x}: %{customdata} late<extra></extra>",
        row=4,
        col=1,
    )


def _set_out(figure: go.Figure, outcome: Outcome, told: Told, times: Times, inner: int) -> None:
    wanted = outcome.objective
    titles = (
        "<b>Replicas that are ready</b>, and what the demand alone keeps busy (grey)",
        f"<b>Occupancy</b>, and the band of {wanted.utilization_low:.0%}–{wanted.utilization_high:.0%} "
        "(green)",
        f"<b>Wait of the unluckiest 1 %</b> (p99), and the objective of {wait(wanted.wait_seconds)} (red)",
        "<b>Where it went wrong</b>: the darker, the more waited too long",
    )
    for row, title in enumerate(titles, start=1):
        figure.add_annotation(
            text=title,
            x=0,
            xref="x domain",
            xanchor="left",
            y=1,
            yref="y domain",
            yanchor="bottom",
            yshift=5,
            showarrow=False,
            font={"size": 14, "color": style.INK},
            row=row,
            col=1,
        )
    figure.update_layout(
        height=inner + _TOP + _BOTTOM,
        font={"family": style.FONT, "size": 12.5, "color": style.QUIET},
        plot_bgcolor="white",
        paper_bgcolor="white",
        hovermode="x unified",
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1 + 34 / inner, "yanchor": "bottom"},
        margin={"l": 10, "r": 10, "t": _TOP, "b": _BOTTOM},
    )
    figure.update_xaxes(showgrid=False, zeroline=False, range=[times[0], times[-1]])
    figure.update_yaxes(gridcolor=style.GRID, zeroline=False, automargin=True)
    figure.update_yaxes(rangemode="tozero", row=1)
    figure.update_yaxes(range=[0, 1.05], tickformat=".0%", dtick=0.25, row=2)
    figure.update_yaxes(
        type="log",
        range=_wait_range(outcome),
        tickvals=[outcome.wait_drawn_least, *_WAIT_TICKS],
        ticktext=[f"≤ {wait(outcome.wait_drawn_least)}", *(wait(tick) for tick in _WAIT_TICKS)],
        row=3,
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, row=4)
    figure.update_xaxes(title_text=f"time ({told.zone})" if told.zone else "hours since the beginning", row=4)


def _wait_range(outcome: Outcome) -> list[float]:
    """Return the logarithms between which waits are drawn."""
    highest = max(
        float(np.nanmax(each.played[0].windows.wait_p99, initial=outcome.wait_drawn_least))
        for each in outcome.shown
    )
    top = max(highest, 3 * outcome.objective.wait_seconds, 1.0)
    return [float(np.log10(outcome.wait_drawn_least)) - 0.1, float(np.log10(top)) + 0.1]


def sweep_chart(outcome: Outcome) -> str:
    """Draw cost against bad windows, a line for each family of policies; without the library."""
    figure = go.Figure()
    colors = iter(style.OTHERS)
    for family in outcome.tuned:
        color = style.FIXED if family == FIXED else next(colors)
        theirs = sorted(
            (each for each in outcome.peers if each.contender.family == family),
            key=lambda each: each.mean("gpu_hours"),
        )
        _add_sweep(figure, theirs, family, color, "lines+markers+text")
    if outcome.own is not None:
        _add_sweep(figure, [outcome.own], outcome.own.name, style.OWN, "markers")
    figure.add_vrect(0, BAD_WINDOWS_MAX, fillcolor=style.GOOD, opacity=0.12, line_width=0, layer="below")
    figure.update_layout(
        height=430,
        font={"family": style.FONT, "size": 12.5, "color": style.QUIET},
        plot_bgcolor="white",
        paper_bgcolor="white",
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 10, "r": 10, "t": 60, "b": 50},
    )
    figure.update_xaxes(title_text="bad five-minute windows", tickformat=".0%", gridcolor=style.GRID)
    figure.update_yaxes(title_text="GPU-hours", gridcolor=style.GRID, automargin=True, tickformat=",")
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config=_CONFIG))


def _add_sweep(figure: go.Figure, standings: list[Standing], name: str, color: str, mode: str) -> None:
    own = mode == "markers"
    figure.add_scatter(
        x=[each.mean("bad_windows") for each in standings],
        y=[each.mean("gpu_hours") for each in standings],
        name=name,
        mode=mode,
        text=[each.name.rpartition(" ")[2] for each in standings],
        textposition="top right",
        textfont={"size": 11, "color": color},
        marker={"size": 15 if own else 8, "color": color, "symbol": "star" if own else "circle"},
        line={"color": color, "width": 1.5},
        customdata=[
            f"{each.name}: {hours(each.mean('gpu_hours'))} GPU-hours, {share(each.mean('bad_windows'))} bad, "
            f"{share(each.mean('objective_met'))} in time"
            for each in standings
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
