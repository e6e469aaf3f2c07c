"""`autoscaler explain --verify`: decides again what a history recorded, and compares."""

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from autoscaler import __version__
from autoscaler.cli.explain import Source
from autoscaler.cli.narrow import fitting
from autoscaler.cli.series_source import progress_on_stderr
from autoscaler.errors import UsageError
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.verification import Verdict, verify

_WIDTH_OF_PIPE = 160
"""Columns of what goes into a file or a pipe, which has no width of its own."""
_DISPENSABLE = ("to", "from")
"""Left out of the table in this order where a terminal is narrow; `--json` has them."""


def verify_decisions(source: Source, pool: str | None, last: int | None, as_json: bool) -> bool:
    """Re-execute the `last` decisions of `pool`, or all of all; print what came of it.

    Returns
    -------
    bool
        Whether every decision that could be re-executed came out as it was recorded.

    Raises
    ------
    UsageError
        If there is nothing to re-execute; the text says why, and the remedy.
    """
    path = source.file(pool)
    if path is None:
        raise UsageError("--verify: reads a history file; name it by --history FILE or --config FILE")
    verdicts = _verdicts(path, pool, last)
    if as_json:
        plain = [{**asdict(verdict), "holds": verdict.holds} for verdict in verdicts]
        typer.echo(json.dumps({"version": __version__, "pools": plain}, indent=2))
    else:
        _show(verdicts)
    return all(verdict.holds for verdict in verdicts)


def _verdicts(path: Path, pool: str | None, last: int | None) -> list[Verdict]:
    with HistoryReader(path) as reader, progress_on_stderr("re-execute") as report:
        there = reader.decided_pools()
        if pool is not None and pool not in there:
            raise UsageError(f"--pool {pool}: no decisions of it in {path}; there are of {', '.join(there)}")
        pools = there if pool is None else [pool]
        if not pools:
            raise UsageError(f"history {path}: no decisions yet; there is nothing to re-execute.")
        if not any(reader.checkpoints(name) for name in pools):
            raise UsageError(
                f"history {path}: holds decisions, but no state of a controller to re-execute them from; it "
                f"was written by a version that kept none. Run this one with it: it keeps one at its start."
            )
        return [verify(reader, name, last, partial(report, name)) for name in pools]


def _show(verdicts: list[Verdict]) -> None:
    out = Console(width=None if sys.stdout.isatty() else _WIDTH_OF_PIPE, highlight=False, markup=False)
    out.print(fitting(out, lambda without: _table(verdicts, without), _DISPENSABLE))
    for verdict in verdicts:
        for line in _remarks(verdict):
            out.print(f"{verdict.pool}: {line}", soft_wrap=True)


def _table(verdicts: Sequence[Verdict], without: Collection[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("pool", overflow="fold")
    stays = [heading not in without for heading in ("from", "to")]
    for heading in compress(("from", "to"), stays):
        table.add_column(heading, no_wrap=True)
    for heading in ("re-executed", "identical", "not possible"):
        table.add_column(heading, justify="right", no_wrap=True)
    for verdict in verdicts:
        counts = (verdict.executed, verdict.identical, verdict.before + verdict.unreached)
        times = (_calendar(verdict.since_wall), _calendar(verdict.until_wall))
        table.add_row(verdict.pool, *compress(times, stays), *(f"{count:,}" for count in counts))
    return table


def _remarks(verdict: Verdict) -> list[str]:
    """Say what the table cannot."""
    lines = []
    if verdict.versions:
        lines.append(
            f"states were written by version {', '.join(verdict.versions)}, and this is {__version__}; what "
            f"differs may differ for that. Use that version to be sure."
        )
    if verdict.before:
        lines.append(f"{_decisions(verdict.before)} before the first checkpoint cannot be re-executed.")
    if verdict.first_obstacle:
        lines.append(
            f"{_decisions(verdict.unreached)} could not be re-executed: {verdict.first_obstacle}; it goes on "
            f"at the next checkpoint."
        )
    if (first := verdict.first_difference) is not None:
        lines.append(
            f"{_decisions(verdict.executed - verdict.identical)} came out otherwise; first at "
            f"{_calendar(first.wall_time)}: {first.field} is stored as {_shown(first.stored)}, "
            f"re-executed it is {_shown(first.executed)}."
        )
    if verdict.executed and verdict.holds:
        lines.append(f"all {verdict.executed:,} re-executed decisions are identical, to the last bit.")
    return lines


def _decisions(count: int) -> str:
    return "1 decision" if count == 1 else f"{count:,} decisions"


def _shown(value: Any) -> str:
    return "not a number" if value is None else str(value)


def _calendar(wall_time: float | None) -> str:
    if wall_time is None:
        return "–"
    return datetime.fromtimestamp(wall_time).strftime("%Y-%m-%d %H:%M:%S")
