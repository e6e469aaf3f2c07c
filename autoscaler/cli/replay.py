"""`autoscaler replay`: what would this policy have cost on that traffic, and missed?"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from autoscaler.domain import Objective
from autoscaler.errors import UsageError
from autoscaler.replay.policies import FixedPolicy, OwnPolicy, Policy, peak_replicas
from autoscaler.replay.report import Report, clairvoyant_gpu_hours, report
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from autoscaler.telemetry.traffic_file import read_traffic
from autoscaler.units import format_duration

_REPLICAS_MAX = 100_000
"""Each is an object with a life of its own."""


def replay_series(
    series: Path,
    seed: int,
    as_json: bool,
    *,
    history: float,
    interval: float | None,
    wait: float,
    **circumstances: Any,
) -> None:
    """Replay a series from a file, the first `history` [s] of it known beforehand.

    `interval` [s] is how long a row counted, where the file does not say; `circumstances` are fields of
    `Scenario`.

    Raises
    ------
    UsageError
        If the file is no series, all of it history, or more than can be replayed.
    """
    demand = read_traffic(series, interval=interval).known_counts(interval=1.0)
    scenario = Scenario(
        demand.values, demand.interval, objective=Objective(wait_seconds=wait), **circumstances
    )
    try:
        scenario = scenario.learning_from(history)
        scenario.check_size()
    except UsageError as error:
        raise UsageError(f"{series}: {error}") from error
    _check_fleet(scenario)
    first_minutes = replace(scenario, counts=scenario.counts[: max(1, round(300.0 / demand.interval))])
    replay_scenario(scenario.starting_with(peak_replicas(first_minutes)), seed, as_json)


def _check_fleet(scenario: Scenario) -> None:
    """Raise UsageError if the fleet for the peak is none that anybody has."""
    peak = peak_replicas(scenario)
    if peak > _REPLICAS_MAX:
        raise UsageError(
            f"--service-time {format_duration(scenario.service_time_mean)}: the busiest 5 minutes take "
            f"{peak:,} replicas, more than the {_REPLICAS_MAX:,} that can be replayed; check its unit, or "
            "raise --slots"
        )


def replay_scenario(scenario: Scenario, seed: int, as_json: bool) -> None:
    """Replay our controller and a fixed fleet for the peak over the same requests; print what came of it."""
    bound = clairvoyant_gpu_hours(scenario, seed)
    peak = peak_replicas(scenario)
    with_peak = FixedPolicy(peak)
    policies: list[tuple[str, Policy, int]] = [
        (OwnPolicy.name, OwnPolicy(scenario), scenario.replicas_initial),
        (with_peak.name, with_peak, peak),
    ]
    reports = []
    console = Console(stderr=True)
    if not console.is_terminal:  # where no bar can move, say at least what is going on
        console.print(f"replaying {scenario.counts.sum():,.0f} requests for each of {len(policies)} policies")
    with Progress(console=console, transient=True, disable=as_json) as progress:
        for name, policy, initial in policies:
            task = progress.add_task(f"replay {name}", total=1.0)
            record = replay(
                scenario.starting_with(initial),
                policy,
                seed,
                progress=partial(_shown, progress, task),
            )
            reports.append(report(name, record, scenario, bound))
    if as_json:
        print(json.dumps([each.as_dict() for each in reports], indent=2))
    else:
        Console().print(table(reports))


def _shown(progress: Progress, task: TaskID, fraction: float) -> None:
    progress.update(task, completed=fraction)


def table(reports: Sequence[Report]) -> Table:
    """Put reports side by side, a column for each policy."""
    shown = Table(title=f"{reports[0].requests:,} requests replayed")
    shown.add_column("")
    for each in reports:
        shown.add_column(each.policy, justify="right")
    bound = reports[0].clairvoyant_gpu_hours
    rows: list[tuple[str, Callable[[Report], str]]] = [
        ("GPU-hours", lambda each: f"{each.gpu_hours:,.1f}"),
        ("  x clairvoyant bound", lambda each: f"{each.gpu_hours / bound:.2f}" if bound else "-"),
        ("busy", lambda each: f"{each.utilization:.0%}"),
        ("time in band", lambda each: f"{each.time_in_band:.0%}"),
        ("wait p50 / p95 / p99", _waits),
        ("objective met", lambda each: f"{each.objective_met:.2%}"),
        ("bad 5-minute windows", lambda each: f"{each.bad_windows:.1%}"),
        ("scale-ups / -downs", lambda each: f"{each.scale_ups} / {each.scale_downs}"),
    ]
    for heading, cell in rows:
        shown.add_row(heading, *(cell(each) for each in reports))
    return shown


def _waits(each: Report) -> str:
    return " / ".join(f"{wait:.2g}" for wait in (each.wait_p50, each.wait_p95, each.wait_p99)) + " s"
