"""A study as a page, by plotly: the picture of `picture_png` with every value to be read off.

The page holds the library that draws it, so that it needs no network.
"""

from html import escape
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from autoscaler.outlook.picture import Band, Errors, Fan, Picture
from autoscaler.outlook.words import rate, share

INK, QUIET, GRID = "#22303c", "#6b7c8c", "#e4e9ee"
COLORS = ("#17466e", "#b9c6d1", "#8fa3b3")
SAID, FAN = "224, 159, 62", "74, 144, 196"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>body {{ margin: 0 }}</style></head>
<body>{drawn}</body>
</html>
"""


def write_html(picture: Picture, path: Path) -> None:
    """Write `picture` as a page into `path`."""
    heights = [0.68, 0.32] if picture.errors else [1.0]
    figure = make_subplots(rows=len(heights), cols=1, row_heights=heights, vertical_spacing=0.17)
    for band in picture.retold.bands:
        name = picture.retold_name
        _add_band(figure, picture.retold, band, f"rgba({SAID}, 0.35)", name, in_legend=name)
    for band in picture.fan.bands:
        legend = "50, 80, 95 % between" if band is picture.fan.bands[-1] else None  # all of one color
        _add_band(figure, picture.fan, band, f"rgba({FAN}, 0.24)", f"{share(band.share)} between", legend)
    _add_line(figure, picture.past_times, picture.past, "came", {"color": INK, "width": 1.2})
    _add_line(
        figure, picture.fan.times, picture.fan.means, picture.chosen, {"color": COLORS[0], "width": 2.5}
    )
    figure.add_vline(picture.now, line_color=QUIET, line_dash="dash", line_width=1, row=1, col=1)
    if picture.errors:
        _add_errors(figure, picture.errors)
    _set_out(figure, picture)
    drawn = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        config={"displaylogo": False, "responsive": True},
        default_height="min(100vh, 50rem)",
    )
    path.write_text(_PAGE.format(title=escape(picture.title), drawn=drawn), "utf-8")


def _add_band(figure: go.Figure, fan: Fan, band: Band, color: str, name: str, in_legend: str | None) -> None:
    """Fill what lies between; the bands of one color are hidden and shown together."""
    times = list(fan.times)
    for values, fill in ((band.high, None), (band.low, "tonexty")):
        figure.add_scatter(
            x=times,
            y=values,
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor=color,
            name=in_legend or name,
            legendgroup=color,
            showlegend=fill is not None and in_legend is not None,
            customdata=[f"{rate(low)} – {rate(high)}" for low, high in zip(band.low, band.high, strict=True)],
            hovertemplate=f"%{{customdata}}<extra>{name}</extra>" if fill else None,
            hoverinfo=None if fill else "skip",
            row=1,
            col=1,
        )


def _add_line(figure: go.Figure, times: object, values: object, name: str, line: dict[str, object]) -> None:
    figure.add_scatter(
        x=list(times),  # type: ignore[call-overload]  # datetimes, or an array of days
        y=values,
        mode="lines",
        line=line,
        name=name,
        customdata=[rate(float(value)) for value in values],  # type: ignore[attr-defined]  # an array
        hovertemplate="%{customdata}",
        row=1,
        col=1,
    )


def _add_errors(figure: go.Figure, errors: Errors) -> None:
    horizons = [f"{horizon} ahead" for horizon in errors.horizons]
    for number, (name, values) in enumerate(errors.lines.items()):
        told = ["" if value is None else rate(value) for value in values]
        if number == 0:
            held = zip(told, errors.held, strict=True)
            told = [f"{each}, 80 % band held {share_held}" for each, share_held in held]
        figure.add_bar(
            x=horizons,
            y=values,
            name=name,
            marker_color=COLORS[number],
            customdata=told,
            hovertemplate="%{customdata}",
            legend="legend2",
            row=2,
            col=1,
        )


def _set_out(figure: go.Figure, picture: Picture) -> None:
    title = (
        f"<b>{escape(picture.title)}</b><br>"
        f"<span style='font-size:14px;color:{QUIET}'>{escape(picture.subtitle)}</span>"
    )
    across = {"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "bottom"}
    figure.update_layout(
        title={"text": title, "x": 0.03, "xanchor": "left", "y": 0.95, "font": {"size": 22, "color": INK}},
        font={"family": _FONT, "size": 13, "color": QUIET},
        plot_bgcolor="white",
        paper_bgcolor="white",
        hovermode="x unified",
        legend={**across, "y": 1.0},
        legend2={**across, "y": 0.275},
        bargap=0.25,
        bargroupgap=0.08,
        margin={"l": 80, "r": 40, "t": 120, "b": 50},
    )
    figure.update_yaxes(gridcolor=GRID, zeroline=False, rangemode="tozero", ticksuffix="/s")
    figure.update_xaxes(showgrid=False, zeroline=False)
    figure.update_yaxes(range=[0.0, picture.top], row=1)
    if not picture.has_calendar:
        figure.update_xaxes(tickprefix="day ", row=1)
    if picture.errors:
        figure.update_yaxes(title_text="Mean error", nticks=5, row=2)
