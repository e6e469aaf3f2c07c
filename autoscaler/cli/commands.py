"""What can be typed, and how a command ends.

Exit code 0: it did what was asked; 2: the user can mend it (a wrong file, a taken port, an unknown
option), and the message says how; 130: Ctrl-C; 1: anything else. Each command imports what it needs when
it is called, so that help and mistakes are answered at once.
"""

import os
import sys
from enum import StrEnum
from errno import EDQUOT, ENOSPC
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from autoscaler import __version__
from autoscaler.cli.forecast import forecast
from autoscaler.cli.history import history_commands
from autoscaler.cli.key import key_commands
from autoscaler.cli.option_values import a_whole_number
from autoscaler.cli.plan import plan
from autoscaler.cli.replay import replay
from autoscaler.cli.topology import topology
from autoscaler.errors import AutoscalerError, SettingsError, UsageError

_ADMIN_URL = "http://127.0.0.1:8082"
_CAN_BE_MENDED = 2

app = typer.Typer(
    name="autoscaler",
    help="Queues, forecasts and scales in front of model servers. Start with: autoscaler run -c FILE",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class LogLevel(StrEnum):
    """What is logged: this and what is more urgent."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Config = Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration file (YAML).")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Pool = Annotated[str | None, typer.Option("--pool", metavar="NAME", help="Only this pool.")]
Url = Annotated[str, typer.Option("--url", metavar="URL", help="Admin listener of the running program.")]


@app.command()
def run(
    config: Config,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="Log this and what is more urgent.")
    ] = LogLevel.INFO,
) -> None:
    """Take requests and keep the fleet at its size.

    Requests are queued here and each goes to a replica with a free slot. SIGTERM or Ctrl-C drains, then ends.
    """
    from autoscaler.cli.run import serve  # noqa: PLC0415 - see the top of this file

    serve(config, log_level.value)


@app.command()
def sidecar(
    config: Config,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="Log this and what is more urgent.")
    ] = LogLevel.INFO,
) -> None:
    """Take requests for one server, beside it, and tell a controller how many there are.

    Queues, dispatches and merges as `run` does, and decides nothing. SIGTERM or Ctrl-C drains, then ends.
    """
    from autoscaler.cli.sidecar import become_sidecar  # noqa: PLC0415 - see the top of this file

    become_sidecar(config, log_level.value)


@app.command()
def controller(
    config: Config,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="Log this and what is more urgent.")
    ] = LogLevel.INFO,
) -> None:
    """Keep fleets at their size whose requests go through sidecars.

    Reads what the sidecars counted, decides, and tells the platform. Several controllers may look after the
    same pools; one of them leads, and the others stand by.
    """
    from autoscaler.cli.controller import control  # noqa: PLC0415 - see the top of this file

    control(config, log_level.value)


@app.command()
def check(config: Config, as_json: Json = False) -> None:
    """Find everything wrong with a configuration.

    Names every error in the file with its place, then tries what the file names: commands, servers,
    addresses, GPUs, files. Exit code 0 if the program can run, 2 if not.
    """
    from autoscaler.cli.check import check_file  # noqa: PLC0415 - see the top of this file

    raise typer.Exit(0 if check_file(config, as_json) else _CAN_BE_MENDED)


@app.command()
def explain(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Configuration whose history is read."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help=f"Admin listener of the running program ({_ADMIN_URL})."),
    ] = None,
    history: Annotated[
        Path | None, typer.Option("--history", metavar="FILE", help="History file; the program need not run.")
    ] = None,
    pool: Pool = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            parser=a_whole_number(1, 1000),
            metavar="N",
            help="So many decisions (20; all with --verify).",
        ),
    ] = None,
    as_json: Json = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Decide it all again, and say whether each decision comes out to the last bit."
        ),
    ] = False,
) -> None:
    """Tell the last decisions in words.

    From the running program, or, with --config or --history, from what it recorded. With --verify, exit code
    0 if every decision that can be re-executed is identical, 1 if not.
    """
    from autoscaler.cli.explain import LAST, Source, explain_decisions  # noqa: PLC0415 - see the top of this file

    if sum(given is not None for given in (config, url, history)) > 1:
        raise typer.BadParameter("give one of --config, --url and --history")
    source = Source(config, history, url or _ADMIN_URL)
    if verify:
        from autoscaler.cli.explain_verify import verify_decisions  # noqa: PLC0415 - see the top of this file

        raise typer.Exit(0 if verify_decisions(source, pool, last, as_json) else 1)
    explain_decisions(source, pool, last or LAST, as_json)


@app.command()
def top(url: Url = _ADMIN_URL, pool: Pool = None) -> None:
    """Watch the running program live.

    Arrivals and their forecast, replicas, occupancy against the band, waits against the objective, and the
    last decision. Ctrl-C leaves. Into a pipe or a file it prints one line for each pool and ends; exit code 1
    if nobody answers.
    """
    from autoscaler.cli.top import watch_program  # noqa: PLC0415 - see the top of this file

    watch_program(url, pool)


app.command()(replay)
app.command()(plan)
app.command()(forecast)
app.command()(topology)
app.add_typer(history_commands)
app.add_typer(key_commands)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"autoscaler {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version and end."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line and end the process."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where a locale lacks a sign, "?" is better than no answer
    try:
        app(prog_name="autoscaler")
    except SettingsError as error:
        number = len(error.problems)
        print(
            f"{error}\nautoscaler: {number} problem{'s' * (number > 1)} in the configuration", file=sys.stderr
        )
        sys.exit(_CAN_BE_MENDED)
    except AutoscalerError as error:
        print(f"autoscaler: {error}", file=sys.stderr)
        sys.exit(_CAN_BE_MENDED if isinstance(error, UsageError) else 1)
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not tried again
        print(f"autoscaler: cannot write: {error.strerror}; make room where it writes to", file=sys.stderr)
        sys.exit(_CAN_BE_MENDED)
