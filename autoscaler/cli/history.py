"""`autoscaler history`: what can be done to a history file; `history_run` does it."""

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.cli.option_values import DAY, a_duration

_HELP = "Put demand of the past into a history."
history_commands = typer.Typer(name="history", no_args_is_help=True, help=_HELP)


@history_commands.callback()
def _commands() -> None:
    """Stand before the commands: a group of one would else be that one."""


def _time(name: str, help_: str) -> typer.models.OptionInfo:
    return typer.Option(f"--{name}", parser=a_duration(1e-3, 3660 * DAY), metavar="TIME", help=help_)


@history_commands.command("import")
def import_(
    series: Annotated[
        Path | None,
        typer.Argument(metavar="[SERIES]", help="CSV of counts or requests, access log, or JSON lines."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Configuration whose history it is."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="The history file; made if there is none."),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option("--pool", metavar="NAME", help="Whose demand it is."),
    ] = None,
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
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="DATE", help="When a file of relative times begins."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Import demand of the past, so that the first forecast knows weeks of it.

    From a file, or from --prometheus with --query. What the history holds is never overwritten, and importing
    the same again changes nothing. The program that writes to the history must not run meanwhile.
    """
    from autoscaler.cli.history_run import Target, run_import  # noqa: PLC0415 - see the top of `commands`
    from autoscaler.cli.series_source import Asked  # noqa: PLC0415 - see the top of `commands`

    asked = Asked(series, None, None, prometheus, query, kind, since, step)
    run_import(asked, Target(config, history, pool), start, as_json)
