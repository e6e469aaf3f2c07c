"""Prints a study: what was found, the forecast, how forecasts of the past did, and who stood for election."""

import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import compress

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from autoscaler.cli.narrow import fitting
from autoscaler.outlook.study import Study
from autoscaler.outlook.words import (
    chosen_in_words,
    count,
    found_in_words,
    judged_in_words,
    length,
    moment,
    share,
)

_CHOSEN, _QUIET = "bold", "bright_black"
_WIDTH_OF_PIPE = 160
"""Columns of what goes into a file or a pipe, which has no width of its own."""
_ROWS_MAX = 12
"""Of the forecast; more steps are left out evenly."""
_ALWAYS = 3
_DISPENSABLE_OF_CANDIDATES = ("time to fit", "against the chosen")
_DISPENSABLE_OF_FORECAST = ("95 % between", "99 % below", "80 % between")
_DISPENSABLE_OF_JUDGED = ("loss at 90 %", "in its 95 %", "persistence", "seasonal naive", "in its 80 %")
"""Left out of the tables in this order where a terminal is narrow; `--json` has them."""


def show_study(study: Study, name: str, form: str, notes: Iterable[str], zone: str) -> None:
    """Print everything, a part after another."""
    out = Console(width=None if sys.stdout.isatty() else _WIDTH_OF_PIPE, highlight=False)
    _say(out, f"{name}: {form}", _CHOSEN)
    for line in (*found_in_words(study.found, zone), *notes):
        _say(out, f"  {line}")
    out.print()
    _say(out, chosen_in_words(study), _CHOSEN)
    out.print(fitting(out, lambda without: _candidates(study, without), _DISPENSABLE_OF_CANDIDATES))
    _part(out, f"Forecast, requests in {length(study.found.series.interval)}")
    out.print(fitting(out, lambda without: _forecast(study, zone, without), _DISPENSABLE_OF_FORECAST))
    if study.judged:
        _part(out, f"Mean error in the past, requests in {length(study.found.series.interval)}")
        out.print(fitting(out, lambda without: _judged(study, without), _DISPENSABLE_OF_JUDGED))
        out.print()
        _say(out, judged_in_words(study), _CHOSEN)
    elif study.judged is not None:
        _part(out, "Too short to judge forecasts of the past")


def _candidates(study: Study, without: Collection[str]) -> Table:
    headings = ("", "forecaster", "loss at 90 %", "against the chosen", "time to fit")
    table, stays = _table(headings, without)
    losses = study.selection.losses
    best = losses[study.selection.name]
    for name in sorted(losses, key=losses.__getitem__):
        chosen = name == study.selection.name
        more = "" if chosen or best <= 0 else f"{100 * (losses[name] / best - 1):+.0f} %"
        seconds = study.fit_seconds.get(name)
        took = "–" if seconds is None else length(max(seconds, 1e-4))
        cells = ("→" if chosen else "", name, count(losses[name]), more, took)
        table.add_row(*compress(cells, stays), style=_CHOSEN if chosen else None)
    return table


def _forecast(study: Study, zone: str, without: Collection[str]) -> Table:
    headings = ("", "from", "ahead", "mean", "80 % between", "95 % between", "99 % below")
    table, stays = _table(headings, without)
    ahead, interval = study.forecast, study.found.series.interval
    steps = np.unique(np.round(np.linspace(0, len(ahead.means) - 1, _ROWS_MAX)).astype(int))
    for step in steps.tolist():
        low, p10, _, _, _, p90, high, p99 = ahead.quantiles[step].tolist()
        cells = (
            "",
            moment(study.found, (ahead.first + step) * interval, zone),
            length((step + 1) * interval),
            count(ahead.means[step]),
            f"{count(p10)} – {count(p90)}",
            f"{count(low)} – {count(high)}",
            count(p99),
        )
        table.add_row(*compress(cells, stays))
    return table


def _judged(study: Study, without: Collection[str]) -> Table:
    rows = study.judged or ()
    name = rows[0].forecaster
    naive = ("persistence", "seasonal naive")
    headings = ("", "ahead", name, *naive, "smaller by", "in its 80 %", "in its 95 %", "loss at 90 %")
    table, stays = _table(headings, without)
    for row in rows:
        seasonal = row.seasonal_naive_mae
        cells: tuple[str | Text, ...] = (
            "",
            length(row.horizon),
            Text(count(row.score.mae), _CHOSEN),
            count(row.persistence_mae),
            "–" if seasonal is None else count(seasonal),
            share(row.gain),
            share(row.score.coverage_80),
            share(row.score.coverage_95),
            count(row.score.pinball_90),
        )
        table.add_row(*compress(cells, stays))
    return table


def _table(headings: Sequence[str], without: Collection[str]) -> tuple[Table, list[bool]]:
    """Return the table, and of each heading whether its column stays; the first three always do."""
    stays = [number < _ALWAYS or heading not in without for number, heading in enumerate(headings)]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=_QUIET)
    for heading in compress(headings, stays):
        words = heading in ("", "forecaster", "from")
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    return table, stays


def _part(out: Console, title: str) -> None:
    out.print()
    out.rule(title, align="left", style=_QUIET)


def _say(out: Console, text: str, style: str = "") -> None:
    """Print a sentence; a file or a pipe has it in one line."""
    out.print(Text(text, style), soft_wrap=not out.is_terminal)
