"""`autoscaler replay`: from what was typed to a table, JSON, a page or a picture.

Ctrl-C ends the replays and keeps those that are finished: they are shown, and what is missing is named.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import typer

from autoscaler.cli.plot_file import check_picture, write_picture
from autoscaler.cli.replay_asked import Asked, objective_of, peers_of, price_of
from autoscaler.cli.replay_demand import demand_of
from autoscaler.cli.replay_show import show_outcome
from autoscaler.cli.series_source import progress_on_stderr
from autoscaler.errors import UsageError
from autoscaler.replay.output.lineup import Contender, lineup
from autoscaler.replay.output.plain import outcome_as_plain
from autoscaler.replay.output.play import Stage
from autoscaler.replay.output.runs import Heard, Run, play_all
from autoscaler.replay.output.standing import Outcome, standings_of
from autoscaler.replay.output.traffic_told import Told
from autoscaler.replay.output.words import count
from autoscaler.replay.report import clairvoyant_gpu_hours
from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.traffic.durations import UNITS
from forecasting.local_time import utc_offset

_INTERRUPTED = 130
_TOLD_EVERY = 0.1
"""Where no bar can move, progress is told whenever so much more is done."""


def run_replay(asked: Asked) -> None:
    """Replay what was asked for, and tell.

    Raises
    ------
    UsageError
        If it is impossible; the text names the option or the line, and the remedy.
    """
    _check(asked)
    price = price_of(asked)
    with progress_on_stderr("read") as report:
        stage, told = demand_of(asked, report)
        everybody = lineup(stage.scenario, peers_of(asked), asked.sweep, asked.no_forecast)
        outcome = _played(asked, stage, everybody, _heard(stage, len(everybody) * asked.seeds, report))
    if outcome is None:
        raise typer.Exit(_INTERRUPTED)
    outcome = Outcome(stage, outcome.standings, price, outcome.missing)
    _tell(asked, outcome, told)
    if outcome.missing:
        raise typer.Exit(_INTERRUPTED)


def _check(asked: Asked) -> None:
    """Raise UsageError before anything is read, if the options cannot be met."""
    objective_of(asked)
    price_of(asked)
    peers_of(asked)
    if asked.kind is not None and asked.kind not in list(Kind):
        raise UsageError(f"--kind {asked.kind}: write {', '.join(Kind)}")
    if asked.duration_unit is not None and asked.duration_unit not in UNITS:
        raise UsageError(f"--duration-unit {asked.duration_unit}: write s, ms, us or ns")
    _check_zone(asked.time_zone)
    if asked.html is not None:
        check_picture("--html", asked.html, (".html",))
    if asked.plot is not None:
        check_picture("--plot", asked.plot, (".png",))


def _check_zone(zone: str | None) -> None:
    try:
        utc_offset(zone or "UTC", 0.0)
    except ValueError as error:
        raise UsageError(f"--time-zone {zone}: {error}") from error


def _played(asked: Asked, stage: Stage, everybody: tuple[Contender, ...], heard: Heard) -> Outcome | None:
    """Play everybody over every seed; None if nobody finished."""
    seeds = range(asked.seed, asked.seed + asked.seeds)
    bounds = {seed: clairvoyant_gpu_hours(stage.scenario, seed) for seed in seeds}
    runs = [Run(each, seed, bounds[seed]) for each in everybody for seed in seeds]
    played = play_all(stage, runs, heard)
    finished = {(each.contender, each.seed) for each in played}
    missing = dict.fromkeys(run.contender.name for run in runs if (run.contender, run.seed) not in finished)
    standings = standings_of(everybody, played, stage.scenario.objective)
    return Outcome(stage, standings, None, tuple(missing)) if standings else None


def _heard(stage: Stage, replays: int, report: Callable[[str, float], None]) -> Heard:
    """Return what tells of progress: a bar on a terminal, a line now and then elsewhere."""
    if sys.stderr.isatty():
        return lambda share, name: report(f"replay {name}", share)
    requests = count(round(float(stage.scenario.counts.sum())), "request")
    typer.echo(f"replaying {requests}, {count(replays, 'time')}", err=True)
    told = 0.0

    def heard(share: float, name: str) -> None:
        nonlocal told
        if share >= told + _TOLD_EVERY:
            told = share
            typer.echo(f"  {share:.0%} done, at {name}", err=True)

    return heard


def _tell(asked: Asked, outcome: Outcome, told: Told) -> None:
    if asked.as_json:
        typer.echo(json.dumps(outcome_as_plain(outcome, told), indent=2))
    else:
        show_outcome(outcome, told)
    if asked.html is not None:
        from autoscaler.replay.output.page import write_page  # noqa: PLC0415 - an optional library

        def page(path: Path) -> None:
            write_page(outcome, told, path)

        write_picture("--html", asked.html, page)
    if asked.plot is not None:
        from autoscaler.replay.output.picture_png import write_png  # noqa: PLC0415 - an optional library

        def png(path: Path) -> None:
            write_png(outcome, told, path)

        write_picture("--plot", asked.plot, png)
