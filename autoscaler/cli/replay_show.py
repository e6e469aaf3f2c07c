"""Prints what a replay told: what was replayed, a row for each policy, the verdict, what to configure."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autoscaler.cli.narrow import fitting
from autoscaler.replay.output.advice import advice
from autoscaler.replay.output.cells import Cell, cells_of
from autoscaler.replay.output.configuration import as_yaml, forecast_told, settings_for
from autoscaler.replay.output.standing import BAD_WINDOWS_MAX, Outcome
from autoscaler.replay.output.traffic_told import Told
from autoscaler.replay.output.verdict import objective, verdict
from autoscaler.replay.output.words import count, hours, share, span

_OWN, _QUIET, _BAD, _GOOD = "bold", "bright_black", "red", "green"
_WIDTH_OF_PIPE = 160
"""Columns of what goes into a file or a pipe, which has no width of its own."""
_DISPENSABLE = ("up/down", "in band", "busy", "waits p50/p95/p99", "× bound")
"""Left out of the table in this order where a terminal is narrow; `--json` and `--html` have them."""


def show_outcome(outcome: Outcome, told: Told) -> None:
    """Print everything, a part after another."""
    out = Console(width=None if sys.stdout.isatty() else _WIDTH_OF_PIPE, highlight=False)
    _say(out, f"{told.name}: {told.form}, {_what(outcome)}", _OWN)
    for note in told.notes:
        _say(out, f"  {note}", _QUIET)
    out.print()
    out.print(fitting(out, lambda without: _table(outcome, without), _DISPENSABLE))
    for line in _legend(outcome):
        _say(out, line, _QUIET)
    out.print()
    head, *more = verdict(outcome)
    _say(out, head, _OWN)
    for line in (*more, *advice(outcome)):
        _say(out, f"  · {line}")
    settings = settings_for(outcome)
    if settings:
        out.print()
        out.rule("Configuration for this traffic", align="left", style=_QUIET)
        out.print(Text(as_yaml(settings, told.name)), soft_wrap=True)
        _say(out, forecast_told(outcome), _QUIET)


def _what(outcome: Outcome) -> str:
    scenario = outcome.stage.scenario
    requests = outcome.standings[0].played[0].report.requests
    seeds = f", {count(outcome.seeds, 'random demand')}" if outcome.seeds > 1 else ""
    return f"{count(requests, 'request')} in {span(scenario.duration)}{seeds}"


def _table(outcome: Outcome, dropped: Sequence[str]) -> Table:
    """Put the policies below one another; what misses the objective is red."""
    shown = Table(box=None, padding=(0, 1, 0, 0), header_style=_QUIET)
    shown.add_column("policy", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for cell in cells_of(outcome, outcome.shown[0]):
        if cell.heading not in dropped:
            shown.add_column(cell.heading, justify="right", no_wrap=True)
    for each in outcome.shown:
        verdict_of = Text("met", _GOOD) if each.meets else Text("missed", _BAD)
        cells = [cell for cell in cells_of(outcome, each) if cell.heading not in dropped]
        texts = (Text(_text(cell), _BAD if cell.is_off else "") for cell in cells)
        name = each.name + "*" * each.contender.tried
        shown.add_row(name, verdict_of, *texts, style=_OWN if each.contender.is_own else None)
    return shown


def _text(cell: Cell) -> str:
    return f"{cell.text} ±{cell.spread.removesuffix(' %')}" if cell.spread else cell.text


def _legend(outcome: Outcome) -> list[str]:
    bound = outcome.standings[0].mean("clairvoyant_gpu_hours")
    lines = [
        f"met: {objective(outcome)}, and at most {share(BAD_WINDOWS_MAX)} of 5-minute windows are bad; "
        f"× bound: times the {hours(bound)} GPU-hours of who knows every arrival and lets nobody wait"
    ]
    if outcome.tuned:
        lines.append("*: the best target of its kind, found in hindsight")
    if outcome.seeds > 1:
        lines.append("±: 95 % confidence interval of the mean")
    return lines


def _say(out: Console, text: str, style: str = "") -> None:
    """Print a sentence; a file or a pipe has it in one line."""
    out.print(Text(text, style), soft_wrap=not out.is_terminal)
