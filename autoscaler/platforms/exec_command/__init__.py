"""The platform `exec`: a command of the user's scales, another one tells what is there."""

from autoscaler.platforms.exec_command.options import ExecOptions
from autoscaler.platforms.exec_command.platform import ExecCommand

__all__ = ["ExecCommand", "ExecOptions"]
