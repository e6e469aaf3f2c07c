"""`autoscaler history import`: from a file or a Prometheus into the history of a pool."""

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import typer

from autoscaler.cli.series_source import Asked, Told, check_asked, progress_on_stderr, told_by
from autoscaler.errors import UsageError
from autoscaler.outlook.found import CALENDAR_MIN
from autoscaler.telemetry.history_import import Imported, import_arrivals
from autoscaler.units import format_duration
from forecasting.series import Series


@dataclass(frozen=True, slots=True)
class Target:
    """Which history, and whose."""

    config: Path | None
    history: Path | None
    pool: str | None


def run_import(asked: Asked, target: Target, start: str | None, as_json: bool) -> None:
    """Import, and say what came of it.

    Raises
    ------
    UsageError
        If it is impossible; the text names the option or the line, and the remedy. Nothing has changed then.
    """
    if asked.file is None and asked.prometheus is None and asked.query is None:
        raise UsageError("SERIES: is missing; name a file of demand, or give --prometheus URL with --query")
    check_asked(asked)
    if start is not None and asked.file is None:
        raise UsageError("--start: says nothing without a file; a Prometheus is asked back to --since")
    path, pool = _history_and_pool(target)
    with progress_on_stderr("read") as report:
        told = told_by(asked, lambda share: report("read", share))
        series = _placed(told, start)
        report("write", 1.0)
        done = import_arrivals(path, pool, series, time.time())
    if as_json:
        plain = {"history": str(path), "pool": pool, **asdict(done), "notes": list(told.notes)}
        typer.echo(json.dumps(plain, indent=2))
    else:
        for line in _in_words(told, series, done, path, pool):
            typer.echo(line)


def _history_and_pool(target: Target) -> tuple[Path, str]:
    if (target.config is None) == (target.history is None):
        raise UsageError("give --config FILE, whose history it is, or --history FILE itself")
    if target.config is None:
        if target.pool is None:
            raise UsageError("--pool: missing; say whose demand it is")
        return target.history or Path(), target.pool
    from autoscaler.settings import load  # noqa: PLC0415 - imports every part, which --history need not

    settings = load(target.config)
    names = list(settings.pools)
    if target.pool is None and len(names) > 1:
        raise UsageError(f"--pool: missing; say whose demand it is, of {', '.join(names)}")
    if target.pool is not None and target.pool not in names:
        raise UsageError(f"--pool {target.pool}: not in {target.config}; there is {', '.join(names)}")
    return settings.history, target.pool or names[0]


def _placed(told: Told, start: str | None) -> Series:
    """Return the series at its place in the calendar."""
    series = told.series
    if start is None and series.start < CALENDAR_MIN:
        raise UsageError(f"{told.name}: its times are relative; say when it begins: --start 2026-03-01T00:00")
    if start is None:
        return series
    if series.start >= CALENDAR_MIN:
        raise UsageError(f"--start {start}: {told.name} says itself when it begins, {_utc(series.start)}")
    try:
        begins = datetime.fromisoformat(start)
    except ValueError as error:
        raise UsageError(
            f"--start {start}: not a date; write it as 2026-03-01T00:00, in UTC, or with +01:00"
        ) from error
    begins = begins if begins.tzinfo else begins.replace(tzinfo=UTC)
    return Series(series.values, series.interval, begins.timestamp() + series.start)


def _in_words(told: Told, series: Series, done: Imported, path: Path, pool: str) -> list[str]:
    missing = int(np.isnan(series.values).sum())
    gaps = f", {missing:,} of them without a count" if missing else ""
    lines = [
        f"{told.name}: {told.form}",
        f"  {len(series):,} intervals of {format_duration(series.interval)}{gaps}, "
        f"{_utc(series.start)} to {_utc(series.end)}",
        *(f"  {note}" for note in told.notes),
    ]
    if done.too_old:
        lines.append(f"  {done.too_old:,} intervals left out: older than a history remembers")
    there = done.intervals - done.added
    covered = f"; {there:,} were there already" if there else ""
    added = f"{done.added:,} intervals with {done.arrivals:,} requests added to pool {pool}"
    lines.append(f"{path}: {added}{covered}.")
    return lines


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
