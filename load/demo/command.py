"""`python -m load demo`: what it says at the beginning, while it runs, and at the end."""

import dataclasses
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer
import uvloop
from rich import box
from rich.console import Console
from rich.table import Table

from autoscaler.dashboard.watch import watch
from load.demo.program import ProgramFailed
from load.demo.report import WINDOW, Report
from load.demo.run import run
from load.demo.scenario import POOL, ROOT, Scenario
from load.send import INTERRUPTED, for_people
from load.triton.install import is_installed

TRITON_HOME = ROOT / ".triton"


class Server(StrEnum):
    """What the replicas are."""

    TRITON = "triton"
    PLAIN = "plain"


def demo(
    seconds: Annotated[float, typer.Option(help="How long requests come.", min=1.0)] = 110.0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the result here; - is the screen.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of arrivals, sentences and service times.")] = 1,
    plain: Annotated[bool, typer.Option("--plain", help="Lines of text instead of a live view.")] = False,
    server: Annotated[Server | None, typer.Option(help="[triton where it is installed, else plain]")] = None,
) -> None:
    """Run the main job on this machine: model servers as local replicas, requests like days in fast motion.

    Ends by itself after about two minutes with a table of what happened. Exit code 1 if any request failed.
    """
    to_screen = json_file == Path("-")
    console = Console(stderr=to_screen)  # then standard output is for the result alone
    scenario = Scenario(_choose(server, console), TRITON_HOME, seconds, seed)
    console.print(introduction(scenario))
    screen = Console(stderr=to_screen, force_terminal=False if plain else None)
    try:
        result = uvloop.run(run(scenario, lambda admin: watch(admin, screen, POOL, note(scenario))))
    except ProgramFailed as failure:
        console.print(str(failure), markup=False)
        raise typer.Exit(1) from None
    if result is None:
        console.print("Ended before the first request.")
        raise typer.Exit(INTERRUPTED)
    console.print(table(scenario, result))
    if json_file is not None:
        as_json = json.dumps(dataclasses.asdict(result), indent=2) + "\n"
        _ = sys.stdout.write(as_json) if to_screen else json_file.write_text(as_json)
    raise typer.Exit(INTERRUPTED if result.interrupted else 1 if result.failures else 0)


def _choose(server: Server | None, console: Console) -> Literal["triton", "plain"]:
    installed = is_installed(TRITON_HOME)
    if server is Server.TRITON and not installed:
        raise typer.BadParameter("Triton is not installed; `make triton` does it.", param_hint="--server")
    if server is None and not installed:
        console.print(
            "Triton is not installed (`make triton` does it); the plain HTTP model server takes its place.\n"
        )
    return "triton" if installed and server is not Server.PLAIN else "plain"


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
