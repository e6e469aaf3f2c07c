"""What the user says about commands that scale: words of a template, never a line for a shell.

Of each word only `{replicas}` and `{pool}` are replaced; other braces (JSON, say) stay. The one becomes a
number, the other the name of the pool, and each stays within its word, so nothing needs quoting.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autoscaler.remote_fleet import RemoteFleetOptions


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """Which commands run and watch the replicas of one pool, and how patient to be."""

    pool: str
    """Name of the pool, which `{pool}` becomes."""
    scale: tuple[str, ...]
    """Words of the command that brings the fleet to `{replicas}`; run anew until it exits with 0."""
    fleet: RemoteFleetOptions
    """Where the replicas are found; with neither `urls` nor `dns`, by what `status` prints."""
    status: tuple[str, ...] = ()
    """Words of the command that prints the fleet as JSON; empty if `urls` or `dns` say where it is."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set for both on top of this program's own environment."""
    cwd: Path | None = None
    """Folder in which they run; None is the one this program runs in."""
    timeout: float = 60.0
    """A command that runs longer is ended, with all that it started [s]; keep it above the longest run."""
    status_interval: float = 10.0
    """Pause between two runs of `status` [s]; longer is cheaper, and later."""
    retry_initial: float = 1.0
    """Pause before a failed `scale` is run again [s]; doubled for each failure that follows."""
    retry_max: float = 60.0
    """The pause grows no further [s]; `scale` is also run again after so long if `status` shows that the
    fleet is not as wanted."""

    def __post_init__(self) -> None:
        for name, words in (("scale", self.scale), *([("status", self.status)] if self.status else [])):
            if not words or not words[0]:
                raise ValueError(f"{name} is empty; give the words of a command")
        if not any("{replicas}" in word for word in self.scale):
            raise ValueError(
                "scale has no {replicas}, so it would not know how many; "
                'pass it on, as in ["./scale.sh", "{replicas}"]'
            )
        if self.fleet.is_told and not self.status:
            raise ValueError("nothing says where the replicas are; give a status command, or urls, or dns")
        for name in ("timeout", "status_interval", "retry_initial"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")
        if self.retry_max < self.retry_initial:
            raise ValueError(
                f"need retry_max >= retry_initial, got {self.retry_max} < {self.retry_initial} s"
            )

    def words_to_scale(self, replicas: int) -> list[str]:
        """Return the words of the command that brings the fleet to `replicas`."""
        return [word.replace("{replicas}", str(replicas)).replace("{pool}", self.pool) for word in self.scale]

    @property
    def words_of_status(self) -> list[str]:
        """The words of the command that tells the fleet."""
        return [word.replace("{pool}", self.pool) for word in self.status]

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of both commands."""
        return {**os.environ, **self.env}


def command_problems(options: ExecOptions) -> list[str]:
    """Say what keeps the commands from being run here; empty if nothing does."""
    problems = []
    cwd = options.cwd or Path.cwd()
    if not cwd.is_dir():
        problems.append(f"cwd: {cwd} is not a folder; create it or name another")
    commands = {"scale": options.words_to_scale(0), "status": options.words_of_status}
    for key, words in commands.items():
        if not words:
            continue
        program = str(cwd / words[0]) if os.sep in words[0] else words[0]
        if shutil.which(program, path=options.environment.get("PATH")) is None:
            problems.append(
                f"{key}: {words[0]} was not found or cannot be executed; install it or give its full path"
            )
    return problems
