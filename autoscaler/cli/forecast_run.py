"""`autoscaler forecast`: from a series to a forecast on the screen, as JSON, or as a picture."""

import json
from pathlib import Path

import typer

from autoscaler.cli.forecast_show import show_study
from autoscaler.cli.plot_file import check_plot, draw
from autoscaler.cli.series_source import Asked, Told, check_asked, progress_on_stderr, told_by
from autoscaler.errors import UsageError
from autoscaler.outlook.found import found_in, interval_for
from autoscaler.outlook.plain import study_as_plain
from autoscaler.outlook.study import Study, Wanted, study
from autoscaler.units import format_duration
from forecasting.local_time import utc_offset


def run_forecast(
    asked: Asked,
    *,
    horizon: float | None,
    ahead: float | None,
    zone: str,
    judge: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find the series, study it, and tell.

    Raises
    ------
    UsageError
        If it is impossible; the text names the option or the line, and the remedy.
    """
    _check(asked, zone, plot)
    with progress_on_stderr("read") as report:
        told = told_by(asked, lambda share: report("read", share))
        told, notes = _in_steps(told, asked.step)
        try:
            done = study(found_in(told.series), Wanted(horizon, ahead, zone, judge), report)
        except ValueError as error:
            raise UsageError(f"{told.name}: cannot be forecast: {error}") from error
    if as_json:
        typer.echo(json.dumps(study_as_plain(done, told.name, notes), indent=2))
    else:
        show_study(done, told.name, told.form, notes, zone)
    if plot is not None:
        _draw(done, told.name, zone, plot)


def _in_steps(told: Told, step: float | None) -> tuple[Told, tuple[str, ...]]:
    """Join intervals finer than demand is forecast in, unless a step was asked for."""
    series = told.series
    wanted = interval_for(series.interval * len(series), series.interval)
    if step is not None or wanted == series.interval:
        return told, told.notes
    own, joined = format_duration(series.interval), format_duration(wanted)
    note = f"counted in intervals of {own}, and looked at in intervals of {joined}"
    return Told(series.resample(wanted), told.name, told.form), (*told.notes, note)


def _check(asked: Asked, zone: str, plot: Path | None) -> None:
    """Raise UsageError before anything is read, if the options cannot be met."""
    check_asked(asked)
    check_plot(plot)
    try:
        utc_offset(zone, 0.0)
    except ValueError as error:
        raise UsageError(f"--zone {zone}: {error}") from error


def _draw(done: Study, name: str, zone: str, plot: Path) -> None:
    from autoscaler.outlook.picture import picture_of  # noqa: PLC0415 - with what draws it

    picture = picture_of(done, name, zone)

    def png(path: Path) -> None:
        from autoscaler.outlook.picture_png import write_png  # noqa: PLC0415 - an optional library

        write_png(picture, path)

    def html(path: Path) -> None:
        from autoscaler.outlook.picture_html import write_html  # noqa: PLC0415 - an optional library

        write_html(picture, path)

    draw(plot, png, html)
