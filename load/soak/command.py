"""`python -m load soak`: its options. The heavy parts are imported only when it is called."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autoscaler.cli.option_values import SEED_MAX, a_number, a_whole_number

if TYPE_CHECKING:
    from load.soak.clients import Ends
    from load.soak.run import Report
    from load.soak.watch import Watch

INTERRUPTED = 130
GROWS_MAX = 0.02
"""What certainly grew, by more than this part of its mean while it was watched, leaks [1]."""

WATCHED = ("memory", "descriptors", "tasks", "threads", "busy_slots", "waiting")


def soak(
    minutes: Annotated[
        float, typer.Option(parser=a_number(0.2, 10_000.0), metavar="N", help="How long.")
    ] = 10.0,
    clients: Annotated[
        int, typer.Option(parser=a_whole_number(1, 10_000), metavar="N", help="Well-behaved clients.")
    ] = 24,
    leaving: Annotated[
        float, typer.Option(parser=a_number(0.01, 10_000.0), metavar="N", help="Rude clients per second.")
    ] = 100.0,
    seed: Annotated[int, typer.Option(parser=a_whole_number(0, SEED_MAX), metavar="N")] = 1,
) -> None:
    """Run the product under load and trouble, and tell whether anything leaks, hangs or ends wrongly.

    Servers are killed, stopped, reset, silenced and slowed; clients leave in thousands. Exit code 1 if a
    request ended outside the contract, if anything is left at the end, or if anything grew.
    """
    from load.demo.program import ProgramFailed  # noqa: PLC0415 - see the top of this file
    from load.soak.run import Soak, run  # noqa: PLC0415

    console = Console(width=max(Console().width, 150))
    asked = Soak(minutes * 60, clients, leaving, seed=seed)
    columns = (TextColumn("{task.description}"), BarColumn())
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
            bar = progress.add_task("soak", total=asked.seconds)

            def tell(elapsed: float, ends: "Ends", watch: "Watch") -> None:
                progress.update(bar, completed=elapsed, description=in_a_line(ends, watch))

            report = asyncio.run(run(asked, tell))
    except ProgramFailed as failed:
        console.print(str(failed))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    grown = show(report, console)
    raise typer.Exit(1 if grown or report.wrongs() else 0)


def in_a_line(ends: "Ends", watch: "Watch") -> str:
    """Say how it goes."""
    last = f", {watch.samples[-1].memory:.0f} MiB" if watch.samples else ""
    return f"{ends.counts.total()} ended, {len(ends.violations)} wrongly{last}"


def show(report: "Report", console: Console) -> list[str]:
    """Print what happened; return what grew."""
    from load.soak.slopes import CONFIDENCE, slope  # noqa: PLC0415

    console.print(f"Troubles: {_counted(report.troubles)}")
    console.print(f"Rude clients, {report.left.total()}, left: {_counted(report.left)}")
    console.print(f"Requests, {report.ends.begun}, ended: {_counted(report.ends.counts)}")
    columns = report.watch.columns()
    interval = f"{CONFIDENCE:.0%} interval"
    table = Table("held", "before", "mean", "after", "per hour", interval, "grows", box=box.SIMPLE)
    grown = []
    for name in WATCHED:
        line = slope(columns["time"], columns[name])
        before, after = getattr(report.before, name), getattr(report.after, name)
        if line.grows(GROWS_MAX):
            grown.append(name)
        table.add_row(
            f"{name} [MiB]" if name == "memory" else name,
            f"{before:.1f}",
            f"{line.mean:.1f}",
            f"{after:.1f}",
            f"{line.per_hour:+.2f}",
            f"{line.low:+.2f} … {line.high:+.2f}",
            "YES" if name in grown else "no",
        )
    console.print(table)
    for wrong in report.wrongs():
        console.print(f"WRONG: {wrong}", markup=False)
    return grown


def _counted(counts: "dict[str, int]") -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(counts.items()))
