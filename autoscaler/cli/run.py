"""`autoscaler run`: the standalone program."""

from pathlib import Path

from autoscaler.cli.log_output import configure_logs
from autoscaler.settings import load


def serve(config: Path, log_level: str) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain. Raises UsageError if it cannot start."""
    settings = load(config, command="run")
    configure_logs(log_level)
    from autoscaler.app.program import run  # noqa: PLC0415 - a wrong file is answered before everything else is imported

    run(settings)
