"""Where a series of demand comes from: a file, a history, or a Prometheus; for every command that asks."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from autoscaler.errors import UsageError
from autoscaler.outlook.found import FINER, interval_for
from autoscaler.telemetry.history_reader import HistoryReader, PoolSpan
from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.prometheus_range import RangeQuery, read_range
from autoscaler.telemetry.traffic import Requests, Traffic, read_traffic
from autoscaler.telemetry.traffic.count_table import CountsTable
from autoscaler.units import format_duration
from forecasting.series import Series

STEP = 300.0
"""Length of an interval, if nothing else tells [s]."""
SINCE = 28 * 86_400.0
"""How far back a Prometheus is asked [s]: four weeks show what a week is like."""

Reporter = Callable[[float], None]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A series, whence it came, and what should be known of it."""

    series: Series
    name: str
    form: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a series is, as typed."""

    file: Path | None
    history: Path | None
    pool: str | None
    prometheus: str | None
    query: str | None
    kind: str | None
    since: float | None
    step: float | None


@contextmanager
def progress_on_stderr(what: str) -> Iterator[Callable[[str, float], None]]:
    """Show what is done, its share and the time it takes; on a terminal only, and gone at the end."""
    shown = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with shown:
        task = shown.add_task(what, total=1.0)
        yield lambda doing, share: shown.update(task, description=doing, completed=share)


def check_asked(asked: Asked) -> None:
    """Raise UsageError before anything is read, if the options do not go together."""
    sources = {"SERIES": asked.file, "--history": asked.history, "--prometheus": asked.prometheus}
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(given) or "nothing"
        raise UsageError(f"give one of SERIES, --history FILE and --prometheus URL with --query; got {got}")
    if (asked.prometheus is None) != (asked.query is None):
        raise UsageError("--prometheus and --query: give both, where to ask and what for")
    belongs = {
        "--pool": (asked.pool, "--history"),
        "--kind": (asked.kind, "--prometheus"),
        "--since": (asked.since, "--prometheus"),
    }
    for name, (value, source) in belongs.items():
        if value is not None and source not in given:
            raise UsageError(f"{name}: says nothing without {source}")
    if asked.kind is not None and asked.kind not in list(Kind):
        raise UsageError(f"--kind {asked.kind}: {', '.join(Kind)}")


def told_by(asked: Asked, report: Reporter) -> Told:
    """Read the series that was asked for.

    Raises
    ------
    UsageError
        If that is impossible; the text names the option or the line, and the remedy.
    """
    if asked.history is not None:
        return _from_history(asked.history, asked.pool, asked.step or STEP)
    if asked.prometheus is not None and asked.query is not None:
        now, step = time.time(), asked.step or STEP
        kind = Kind(asked.kind) if asked.kind else None
        query = RangeQuery(asked.prometheus, asked.query, now - (asked.since or SINCE), now, step, kind)
        return _from_prometheus(query, report)
    if asked.file is None:
        raise UsageError("give a SERIES")
    return _from_file(asked.file, asked.step, report)


def _from_file(path: Path, step: float | None, report: Reporter) -> Told:
    """Read counts, or count the requests of a log or a trace in intervals of `step` [s]."""
    # How long requests took is of no interest here; a unit is given so that none is asked for.
    traffic = read_traffic(path, interval=step, duration_unit="s", gaps=True, progress=report)
    if traffic.form == CountsTable.name and traffic.faults:
        fault = traffic.faults[0]
        number, line = fault.examples[0]
        more = f" ({fault.count:,} such lines)" if fault.count > 1 else ""
        raise UsageError(
            f"{path}:{number}: {line[:80]!r}: {fault.reason}{more}. Mend or remove it; a row without a "
            "count is a gap"
        )
    return Told(_counted(traffic, step), path.name, traffic.form, (*_of_faults(traffic), *traffic.notes))


def _from_history(path: Path, pool: str | None, step: float) -> Told:
    """Read the arrivals of a pool from a history; of the only one if none is named."""
    with HistoryReader(path) as reader:
        span = _pool_span(path, reader.pools(), pool)
        since, until = span.start_wall // step * step, span.end_wall // step * step
        counts = reader.arrivals(span.pool, step, since, until)
    series = _trimmed(Series(counts, step, since))
    if not len(series):
        raise UsageError(
            f"history {path}: holds no whole interval of {format_duration(step)} of {span.pool}; give a "
            "shorter --step"
        )
    return Told(series, f"pool {span.pool}", f"history {path.name}")


def _from_prometheus(query: RangeQuery, report: Reporter) -> Told:
    answer = asyncio.run(read_range(query, report))
    series = _trimmed(answer.counts)
    if not len(series):
        raise UsageError(
            f"--query {query.query}: of no interval of {format_duration(query.interval)} the count is known "
            "in full; ask for a longer --step"
        )
    what = f"{answer.meaning.kind} ({answer.meaning.why}), {answer.series:,} series added up"
    return Told(series, query.query, f"Prometheus, {what}", answer.warnings)


def _counted(traffic: Traffic, step: float | None) -> Series:
    demand = traffic.demand
    if isinstance(demand, Requests):
        span = float(demand.arrivals[-1]) if len(demand) else 0.0
        return demand.binned(step or interval_for(span, FINER[-1]))
    if step is None or step == demand.interval:
        return demand
    try:
        return demand.resample(step)
    except ValueError as error:
        raise UsageError(
            f"--step {format_duration(step)}: {traffic.path} counts in intervals of "
            f"{format_duration(demand.interval)}; give a multiple of that"
        ) from error


def _of_faults(traffic: Traffic) -> tuple[str, ...]:
    return tuple(
        f"{fault.count:,} line{'s' * (fault.count > 1)} could not be used: {fault.reason}; the first is line "
        f"{fault.examples[0][0]}: {fault.examples[0][1][:70]}"
        for fault in traffic.faults
    )


def _pool_span(path: Path, spans: list[PoolSpan], pool: str | None) -> PoolSpan:
    if not spans:
        raise UsageError(f"history {path}: no arrivals have been recorded yet")
    names = ", ".join(span.pool for span in spans)
    if pool is None and len(spans) > 1:
        raise UsageError(f"history {path}: holds {names}; choose one with --pool")
    found = next((span for span in spans if pool in (None, span.pool)), None)
    if found is None:
        raise UsageError(f"--pool {pool}: not in history {path}; there is {names}")
    return found


def _trimmed(series: Series) -> Series:
    """Leave out what is not known before the first known count and after the last."""
    known = np.flatnonzero(~np.isnan(series.values)).tolist()
    return series[known[0] : known[-1] + 1] if known else series[:0]
