"""`autoscaler controller`: the control plane of many sidecars."""

from pathlib import Path

from autoscaler.cli.log_output import configure_logs
from autoscaler.settings import load


def control(config: Path, log_level: str) -> None:
    """Decide until SIGTERM or Ctrl-C. Raises UsageError if it cannot start."""
    settings = load(config, command="controller")
    configure_logs(log_level)
    from autoscaler.app.controller import run  # noqa: PLC0415 - a wrong file is answered first

    run(settings)
