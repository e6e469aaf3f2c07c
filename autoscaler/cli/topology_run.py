"""`autoscaler topology`: from the machine to a matrix on the screen, or to JSON."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import Console

from autoscaler.cli.topology_plain import as_plain
from autoscaler.cli.topology_show import show
from autoscaler.errors import UsageError
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.local_process.processes import TAG
from autoscaler.topology.machine import Machine
from autoscaler.topology.placement import Misplaced, misplaced, split_replica
from autoscaler.topology.read_machine import read_machine

_WIDTH_OF_PIPE = 160
"""Columns of what goes into a file or a pipe, which has no width of its own."""


def show_topology(config: Path | None, as_json: bool, sysfs: Path) -> None:
    """Read the machine and print it.

    Raises
    ------
    UsageError
        If `sysfs` is no folder, or the configuration has problems.
    """
    if not sysfs.is_dir():
        raise UsageError(f"--sysfs {sysfs}: is no folder; name the place where the host's /sys is mounted")
    found = read_machine(TAG, sysfs)
    mistakes = misplaced(found.machine, found.processes)
    if config is not None:
        mistakes += _configured(found.machine, config)
    if as_json:
        typer.echo(json.dumps(as_plain(found, mistakes), indent=2))
    else:
        width = None if sys.stdout.isatty() else _WIDTH_OF_PIPE
        show(Console(width=width, highlight=False), found, mistakes)


def _configured(machine: Machine, config: Path) -> Iterator[Misplaced]:
    """Judge the GPUs of each replica as the configuration gives them, before any is started."""
    from autoscaler.settings import load  # noqa: PLC0415 - it imports every part

    by_name = {name: gpu.index for gpu in machine.gpus for name in (str(gpu.index), gpu.uuid)}
    for pool in load(config).pools.values():
        if not isinstance(pool.platform, LocalOptions):
            continue
        for listed in pool.platform.gpus:
            gpus = [by_name[each.strip()] for each in listed.split(",") if each.strip() in by_name]
            yield from split_replica(machine, f'pools.{pool.name}.platform.gpus "{listed}"', gpus)
