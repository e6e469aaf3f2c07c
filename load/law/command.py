"""`python -m load law`: its options. The heavy parts are imported only when it is called."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autoscaler.cli.option_values import SEED_MAX, a_duration, a_whole_number

if TYPE_CHECKING:
    from load.law.judge import Verdict

INTERRUPTED = 130


def law(
    seconds: Annotated[
        float,
        typer.Option(
            "--for", parser=a_duration(5.0, 3600.0), metavar="TIME", help="How long each case runs."
        ),
    ] = "2m",  # type: ignore[assignment]  # typer parses defaults too
    slots: Annotated[int, typer.Option(parser=a_whole_number(1, 1000), metavar="N", help="Servers, c.")] = 8,
    service: Annotated[
        float, typer.Option(parser=a_duration(0.005, 10.0), metavar="TIME", help="Mean service time.")
    ] = "40ms",  # type: ignore[assignment]
    plot: Annotated[Path | None, typer.Option(help="Draw a picture into this file (.svg, .png).")] = None,
    seed: Annotated[int, typer.Option(parser=a_whole_number(0, SEED_MAX), metavar="N")] = 1,
) -> None:
    """Measure whether waits behind the running proxy are those of M/M/c, M/D/c and M/G/c.

    Nine cases, three laws at three utilizations. Exit code 1 if one of them does not hold.
    """
    from load.demo.program import ProgramFailed  # noqa: PLC0415 - see the top of this file
    from load.law.run import cases, run  # noqa: PLC0415

    console = Console(width=max(Console().width, 150))
    todo = cases(slots, service)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} cases"),
    )
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
            bar = progress.add_task(f"{seconds:g} s each", total=len(todo))

            def tell(verdict: "Verdict") -> None:
                progress.update(bar, advance=1, description=in_a_line(verdict))

            verdicts = asyncio.run(run(todo, seconds, seed, tell))
    except ProgramFailed as failed:
        console.print(str(failed))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    console.print(table(verdicts))
    if plot is not None:
        from load.law.plot import draw  # noqa: PLC0415

        draw(verdicts, plot)
    raise typer.Exit(0 if all(verdict.law_holds and verdict.path_holds for verdict in verdicts) else 1)


def in_a_line(verdict: "Verdict") -> str:
    """Say what one case gave."""
    return (
        f"{verdict.case.name} at {verdict.utilization:.3f}: {verdict.wait_measured * 1e3:.2f} ms, "
        f"theory {verdict.wait_model * 1e3:.2f} ms, overhead {verdict.overhead * 1e3:.2f} ms"
    )


def table(verdicts: "list[Verdict]") -> Table:
    """Return the figures; times in milliseconds."""
    head = ("queue", "ρ", "requests", "wait [ms]", "99 % interval", "theory", "formula", "holds")
    path = ("pathwise", "off", "slot overhead", "transit", "holds")
    shown = Table(*head, *path, box=box.SIMPLE, title="Mean waits, and the overhead by the recursion [ms]")
    for each in verdicts:
        low, high = each.wait_measured - each.half_width, each.wait_measured + each.half_width
        shown.add_row(
            each.case.name,
            f"{each.utilization:.3f}",
            f"{each.requests}",
            _ms(each.wait_measured),
            f"{_ms(low)} – {_ms(high)}",
            _ms(each.wait_model),
            _ms(each.wait_formula),
            _yes(each.law_holds),
            _ms(each.wait_pathwise),
            _ms(each.off),
            _ms(each.overhead),
            _ms(each.transit),
            _yes(each.path_holds),
        )
    return shown


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"
