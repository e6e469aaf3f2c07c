"""`python -m load demo`: its options. The heavy parts of the program are imported only when it is called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from autoscaler.cli.option_values import DAY, SEED_MAX, a_number, a_whole_number
from load.demo.scenario import ROOT, Scenario
from load.triton.install import is_installed

TRITON_HOME = ROOT / ".triton"
SCREEN = Path("-")


class Server(StrEnum):
    """What the replicas are."""

    TRITON = "triton"
    PLAIN = "plain"


def demo(
    seconds: Annotated[
        float, typer.Option(parser=a_number(1.0, DAY), metavar="N", help="How long requests come.")
    ] = 110.0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the result here; - is the screen.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            parser=a_whole_number(0, SEED_MAX), metavar="N", help="Of arrivals, sentences and service times."
        ),
    ] = 1,
    plain: Annotated[bool, typer.Option("--plain", help="Lines of text instead of a live view.")] = False,
    server: Annotated[Server | None, typer.Option(help="[triton where it is installed, else plain]")] = None,
) -> None:
    """Run the main job on this machine: model servers as local replicas, requests like days in fast motion.

    Ends by itself after about two minutes with a table of what happened. Exit code 1 if any request failed.
    """
    if json_file is not None and json_file != SCREEN and not json_file.absolute().parent.is_dir():
        raise typer.BadParameter(f"{json_file.parent}: there is no such folder.", param_hint="--json")
    # If the result goes to standard output, everything for people goes to the other one.
    console = Console(stderr=json_file == SCREEN, force_terminal=False if plain else None)
    scenario = Scenario(_choose(server, console), TRITON_HOME, seconds, seed)

    from load.demo.show import run_and_tell  # noqa: PLC0415 - see the top of this file

    raise typer.Exit(run_and_tell(scenario, console, None if json_file == SCREEN else json_file))


def _choose(server: Server | None, console: Console) -> Literal["triton", "plain"]:
    installed = is_installed(TRITON_HOME)
    if server is Server.TRITON and not installed:
        raise typer.BadParameter("Triton is not installed; `make triton` does it.", param_hint="--server")
    if server is None and not installed:
        console.print(
            "Triton is not installed (`make triton` does it); the plain HTTP model server takes its place.\n"
        )
    return "triton" if installed and server is not Server.PLAIN else "plain"
