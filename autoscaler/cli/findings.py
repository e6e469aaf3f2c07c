"""What a check found: one line each, good, doubtful or bad."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """The program runs, but perhaps not as meant."""
    PROBLEM = "problem"
    """The program cannot start, or cannot serve."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried."""

    level: Level
    subject: str
    """The setting that it is about."""
    text: str
    """What was found, and the remedy if one is needed."""
