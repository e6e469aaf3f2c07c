"""`python -m load trial`: its options. The heavy parts are imported only when it is called."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autoscaler.cli.option_values import SEED_MAX, a_duration, a_whole_number

if TYPE_CHECKING:
    from load.trial.report import Report

INTERRUPTED = 130
CAN_BE_MENDED = 2


def trial(
    seconds: Annotated[
        float,
        typer.Option(
            "--for", parser=a_duration(240.0, 36_000.0), metavar="TIME", help="How long there is load."
        ),
    ] = "6m",  # type: ignore[assignment]  # typer parses defaults too
    prometheus: Annotated[
        bool, typer.Option(help="Whether controllers read the demand there; if not, from the sidecars.")
    ] = True,
    seed: Annotated[int, typer.Option(parser=a_whole_number(0, SEED_MAX), metavar="N")] = 1,
) -> None:
    """Run a whole fleet through load and troubles, and tell whether its size stays right and nothing is lost.

    Sidecars, two controllers and a Prometheus; the leader and a sidecar are killed at the peak, and
    Prometheus is away while the load falls. Exit code 1 if a request was lost, nobody took over in time, or
    the fleet had a wrong size.
    """
    from load.demo.program import ProgramFailed  # noqa: PLC0415 - see the top of this file
    from load.trial.plan import Trial  # noqa: PLC0415
    from load.trial.prometheus import ABSENT, installed  # noqa: PLC0415
    from load.trial.run import run  # noqa: PLC0415

    console = Console(width=max(Console().width, 150))
    if prometheus and not installed():
        console.print(f"{ABSENT}; or give --no-prometheus: the controllers read the sidecars then.")
        raise typer.Exit(CAN_BE_MENDED)
    asked = Trial(seconds=seconds, through_prometheus=prometheus, seed=seed)
    columns = (TextColumn("{task.description}"), BarColumn())
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
            bar = progress.add_task("starting", total=asked.seconds)

            def tell(elapsed: float, how: str) -> None:
                progress.update(bar, completed=elapsed, description=how)

            report = asyncio.run(run(asked, tell))
    except ProgramFailed as failed:
        console.print(str(failed), markup=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    show(report, console)
    raise typer.Exit(1 if report.wrongs() else 0)


def show(report: "Report", console: Console) -> None:
    """Print what happened."""
    head = (
        "time [s]",
        "offered [erl]",
        "right",
        "asked for",
        "ready",
        "leads",
        "wait p50 · p95 [s]",
        "troubles",
    )
    table = Table(*head, box=box.SIMPLE)
    for row in report.rows():
        table.add_row(
            f"{row.since:.0f} – {row.until:.0f}",
            f"{row.offered_load:.1f}",
            _span(row.needed),
            _span(row.desired),
            _span(row.ready),
            " ▸ ".join(row.leaders) or "nobody",
            f"{_seconds(row.wait.p50)} · {_seconds(row.wait.p95)}",
            ", ".join(row.troubles),
        )
    console.print(table)
    requests = len(report.records)
    console.print(
        f"Requests: {requests} sent, {requests - report.lost} answered, {report.lost} lost; "
        f"{report.sent_anew} sent to another sidecar when theirs had gone."
    )
    for each in report.troubles:
        took = "" if each.takeover is None else f"; another led after {each.takeover:.1f} s"
        console.print(f"At {each.began:.0f} s {each.name}, for {each.ended - each.began:.1f} s{took}.")
    console.print(
        f"Asked for too few for {report.short:.0f} s, for too many for {report.over:.0f} s; "
        f"longest hold without sight {report.longest_hold:.0f} s."
    )
    for wrong in report.wrongs():
        console.print(f"WRONG: {wrong}", markup=False)


def _span(counts: tuple[int, int]) -> str:
    least, most = counts
    return f"{least}" if least == most else f"{least} – {most}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
