"""The demo for people: what it says at the beginning, above its live view, and at the end."""

import dataclasses
import json
import sys
from pathlib import Path

import uvloop
from rich import box
from rich.console import Console
from rich.table import Table

from autoscaler.dashboard.watch import watch
from load.demo.program import ProgramFailed
from load.demo.report import WINDOW, Report
from load.demo.run import run
from load.demo.scenario import POOL, Scenario
from load.send import INTERRUPTED, for_people


def run_and_tell(scenario: Scenario, console: Console, json_file: Path | None) -> int:
    """Run, show it on `console`, write the result; return the exit code.

    Parameters
    ----------
    json_file : Path or None
        Where the result goes as JSON. If `console` is standard error, it goes to standard output as well.
    """
    console.print(introduction(scenario))
    try:
        result = uvloop.run(run(scenario, lambda admin: watch(admin, console, POOL, note(scenario))))
    except ProgramFailed as failure:
        console.print(str(failure), markup=False)
        return 1
    if result is None:
        console.print("Ended before the first request.")
        return INTERRUPTED
    console.print(table(scenario, result))
    as_json = json.dumps(dataclasses.asdict(result), indent=2) + "\n"
    if json_file is not None:
        json_file.write_text(as_json)
    if console.stderr:
        sys.stdout.write(as_json)
    return INTERRUPTED if result.interrupted else 1 if result.failures else 0


def note(scenario: Scenario) -> str:
    """Say in a few words what is real here and what is not."""
    servers = {"triton": "real Triton servers, a real MiniLM model", "plain": "plain HTTP model servers"}
    return f"demo: {servers[scenario.server]}, service times of an emulated accelerator"


def introduction(scenario: Scenario) -> str:
    """Say what is real here and what is not."""
    servers = {
        "triton": "real NVIDIA Triton servers on the CPU, each with a real MiniLM sentence-embedding model",
        "plain": "plain HTTP model servers",
    }
    return (
        f"Requests come for {scenario.seconds:g} s, like days of {scenario.day:g} s, "
        f"up to {scenario.rate_peak:g}/s.\n"
        f"Replicas are {servers[scenario.server]}; how long they take is up to an emulated accelerator: "
        f"{scenario.service_time:g} s a request on average, {scenario.load_time:g} s to load the weights.\n"
        f"Objective: {scenario.quantile:.0%} of requests wait at most {scenario.wait:g} s, "
        f"with the slots {scenario.utilization_low:.0%} to {scenario.utilization_high:.0%} busy.\n"
    )


def table(scenario: Scenario, result: Report) -> Table:
    """Return the result for people."""
    saved = 1 - result.replica_seconds / max(result.fixed_fleet_replica_seconds, 1e-9)
    rows = {
        "requests": f"{result.requests} in {result.seconds:.0f} s",
        "failures": str(result.failures),
        f"waited at most {scenario.wait:g} s": f"{result.objective_met:.2%} "
        f"(objective {scenario.quantile:.0%})",
        "  day by day": " / ".join(f"{met:.1%}" for met in result.objective_met_by_day)
        + "  (on the first, nothing is known of the day's shape)",
        "wait p50 / p95 / p99": " / ".join(
            for_people(wait) for wait in (result.wait_p50, result.wait_p95, result.wait_p99)
        ),
        "latency beyond wait and service, p99": for_people(result.unexplained_p99),
        "mean occupancy": f"{result.occupancy_mean:.0%}  "
        f"(band {scenario.utilization_low:.0%}–{scenario.utilization_high:.0%})",
        f"time in band, windows of {WINDOW:g} s": f"{result.time_in_band:.0%}",
        "scale-ups, scale-downs": f"{result.scale_ups}, {result.scale_downs}",
        "replicas": f"{result.replicas_min} to {result.replicas_max}",
        "replica-seconds": f"{result.replica_seconds:.0f}",
        "of a fixed fleet": f"{result.fixed_fleet_replica_seconds:.0f}  "
        f"({result.fixed_fleet} replicas, what queueing theory asks at {scenario.rate_peak:g}/s "
        f"for the same objective)",
        "saved": f"{saved:.0%}",
    }
    title = "What happened" + (" until it was interrupted" if result.interrupted else "")
    shown = Table(title=title, title_justify="left", show_header=False, box=box.SIMPLE_HEAD)
    for name, value in rows.items():
        shown.add_row(name, value)
    return shown
