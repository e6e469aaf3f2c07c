"""`autoscaler forecast`: the options of the command; `forecast_run` does the work."""

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.cli.option_values import DAY, a_duration


def _time(name: str, help_: str) -> typer.models.OptionInfo:
    return typer.Option(f"--{name}", parser=a_duration(1e-3, 3660 * DAY), metavar="TIME", help=help_)


def forecast(
    series: Annotated[
        Path | None,
        typer.Argument(metavar="[SERIES]", help="CSV of counts or requests, access log, or JSON lines."),
    ] = None,
    history: Annotated[
        Path | None, typer.Option("--history", metavar="FILE", help="History file of the program instead.")
    ] = None,
    pool: Annotated[str | None, typer.Option("--pool", metavar="NAME", help="Which pool of it.")] = None,
    prometheus: Annotated[
        str | None, typer.Option("--prometheus", metavar="URL", help="Ask this Prometheus instead.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="PROMQL", help="What to ask it for: a counter or a rate.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="counter, rate or count, if not told rightly."),
    ] = None,
    since: Annotated[float | None, _time("since", "How far back to ask it: 4w (default).")] = None,
    step: Annotated[float | None, _time("step", "Length of an interval: 5m, or that of the series.")] = None,
    horizon: Annotated[
        float | None, _time("horizon", "How far ahead matters: a cold start. Default: two intervals.")
    ] = None,
    ahead: Annotated[float | None, _time("ahead", "How far to forecast. Default: a day.")] = None,
    zone: Annotated[
        str, typer.Option("--zone", metavar="ZONE", help="Whose clocks people follow: Europe/Berlin.")
    ] = "UTC",
    backtest: Annotated[
        bool | None,
        typer.Option("--backtest/--no-backtest", help="Judge it on the past. Default: yes, but for --json."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Forecast and errors as a picture: .png or .html."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Forecast demand, and say how far such forecasts can be believed.

    Finds gaps and seasons, chooses the forecaster that did best on the past, and compares it with the naive
    ones. The series comes from a file, from --history, or from --prometheus with --query.
    """
    from autoscaler.cli.forecast_run import run_forecast  # noqa: PLC0415 - see the top of `commands`
    from autoscaler.cli.series_source import Asked  # noqa: PLC0415 - see the top of `commands`

    run_forecast(
        Asked(series, history, pool, prometheus, query, kind, since, step),
        horizon=horizon,
        ahead=ahead,
        zone=zone,
        judge=not as_json if backtest is None else backtest,
        plot=plot,
        as_json=as_json,
    )
