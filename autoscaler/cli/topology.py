"""`autoscaler topology`: the options of the command. `topology_run` does the work."""

from pathlib import Path
from typing import Annotated

import typer


def topology(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Judge the GPUs that its local pools list, too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    sysfs: Annotated[
        Path, typer.Option("--sysfs", metavar="DIR", help="Where the kernel's tree of the host is mounted.")
    ] = Path("/sys"),
) -> None:
    """Show how GPUs, cores, memory and network cards are joined.

    Warns of server processes that are held on the wrong socket, and of GPUs of one replica that cannot
    exchange data fast. Needs no GPU.
    """
    from autoscaler.cli.topology_run import show_topology  # noqa: PLC0415 - see the top of `commands`

    show_topology(config, as_json, sysfs)
