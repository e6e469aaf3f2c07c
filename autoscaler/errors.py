"""Errors of the edges. The core raises `ValueError` for a broken contract, nothing else.

AutoscalerError                anything this program says on purpose; its text is for a person
├── UsageError                 the user can mend it: exit code 2
│   ├── SettingsError          the configuration file, every problem in it at once
│   ├── HistoryLocked          another instance works on the same history file
│   └── PortTaken              somebody else listens there
└── PlatformUnavailable        the platform cannot be asked, or refuses; the controller holds
    └── ReplicaFailed          a replica could not be started
"""

from collections.abc import Sequence
from dataclasses import dataclass


class AutoscalerError(Exception):
    """Root of all errors that this program raises on purpose."""


class UsageError(AutoscalerError):
    """The user asked for something impossible and can mend it; the program ends with exit code 2."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a configuration file, and how to mend it."""

    file: str
    line: int
    """First line is 1; 0 if the file as a whole is meant."""
    column: int
    key: str
    """Where in the tree, as `pools.chat.queue.bytes_max`; empty for the file as a whole."""
    fault: str
    """What stands there: `got "ten"`, `unknown key`, `missing`."""
    allowed: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        text = f"{self.key}: {self.fault}" if self.key else self.fault
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{place}  {text}{allowed}{remedy}"


class SettingsError(UsageError):
    """The configuration file has problems; the text names each with its place, one a line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class HistoryLocked(UsageError):
    """The history file is in use by another instance."""


class PortTaken(UsageError):
    """A listening address is in use."""


class PlatformUnavailable(AutoscalerError):
    """The platform cannot be asked, or refuses."""


class ReplicaFailed(PlatformUnavailable):
    """A replica could not be started."""
