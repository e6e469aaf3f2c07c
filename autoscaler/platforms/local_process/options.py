"""What the user says about local replicas: the command template, the GPUs, and how patient to be.

A template is a tuple of words, never a line for a shell, so nothing needs quoting. Of each word, and of
each environment value, only `{port}`, `{grpc_port}`, `{gpu}` and `{host}` are replaced; other braces (JSON,
say) stay.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"
"""Replicas are reached through the loopback only; `{host}` is this."""


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Which processes are the replicas of one pool, how many there may be, and how they are treated."""

    command: tuple[str, ...]
    """Words of the command; `{port}` is required here or in `env`, for each replica listens on its own."""
    state_dir: Path
    """Folder of the records by which the next start finds what runs; each pool needs its own."""
    slots_per_replica: int = 1
    """Requests one replica serves at a time [1]; raise it for servers that batch."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set for the replica on top of this program's own environment; a template too."""
    cwd: Path | None = None
    """Folder in which the command runs; None is the one this program runs in."""
    gpus: tuple[str, ...] = ()
    """Identifiers for `{gpu}`; together with `replicas_per_gpu` the limit of the fleet. Empty: no limit."""
    replicas_per_gpu: int = 1
    """Replicas that share one GPU [1]; raise it only if their memory fits together."""
    gpus_per_replica: int = 1
    """GPUs that one replica works on together [1]; the closest are put together, and `{gpu}` names them all,
    as `0,1`."""
    pin: bool = True
    """Whether a replica is held on the cores next to its GPUs, where the machine has farther ones."""
    ready_timeout: float = 600.0
    """A replica that is not ready so long after its start is ended and started again [s]."""
    probe_interval: float = 5.0
    """Pause between two probes of a ready replica [s]."""
    probe_failures: int = 6
    """A ready replica that holds no request hangs after so many failed probes in a row [1]."""
    hang_timeout: float = 300.0
    """One that holds requests may be too busy to answer a probe; it hangs after so long without any [s].
    Keep it above the longest service time of a server that answers nothing meanwhile."""
    restart_backoff_initial: float = 1.0
    """Pause before the first restart of a failed replica [s]; doubled for each failure that follows."""
    restart_backoff_max: float = 60.0
    """The pause grows no further [s]; a replica that was ready so long starts again from the initial one."""
    drain_max: float = 60.0
    """A draining replica with requests on it ends after so long [s]; keep it above the longest service."""
    stop_grace: float = 10.0
    """From SIGTERM to SIGKILL [s]."""
    cold_start_initial: float = 60.0
    """What a start is taken to last until one has been measured [s]."""
    sleepers_max: int = 0
    """So many replicas sleep instead of ending when fewer are wanted [1], and are woken when more are: for
    servers that can (vLLM). Each keeps its weights in the memory of the machine, and its place."""
    log_dir: Path | None = None
    """Folder of what replicas print, for this pool alone; None is `logs` in `state_dir`."""
    log_bytes_max: int = 64 * 2**20
    """A log that is longer is cut, and so much of its end set aside in place of the one before [bytes];
    it is looked at each second, so a replica that prints very fast exceeds this for a moment."""

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise ValueError("command is empty; give the words that start one server, with {port} among them")
        self._check_templates()
        self._check_numbers()

    @property
    def places(self) -> int | None:
        """Replicas there is room for [1]; None if nothing limits them."""
        return len(self.gpus) // self.gpus_per_replica * self.replicas_per_gpu if self.gpus else None

    @property
    def logs(self) -> Path:
        """Folder of what replicas print."""
        return self.log_dir or self.state_dir / "logs"

    @property
    def fingerprint(self) -> str:
        """Equal for two configurations whose replicas are the same kind of process."""
        what = [self.command, sorted(self.env.items()), str(self.cwd)]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]

    def gpu_of(self, place: int) -> str:
        """Return the GPU of a place in the fleet; neighbours in number are on different ones."""
        return self.gpus[place % len(self.gpus)] if self.gpus else ""

    @property
    def has_grpc_port(self) -> bool:
        """Whether a replica is given a port for gRPC too."""
        return any("{grpc_port}" in word for word in (*self.command, *self.env.values()))

    def render_command(self, port: int, gpu: str, grpc_port: int = 0) -> list[str]:
        """Return the words that start the replica on these ports and `gpu`."""
        return [_render(word, port, gpu, grpc_port) for word in self.command]

    def render_env(self, port: int, gpu: str, grpc_port: int = 0) -> dict[str, str]:
        """Return the whole environment of the replica on these ports and `gpu`."""
        own = {name: _render(value, port, gpu, grpc_port) for name, value in self.env.items()}
        return {**os.environ, **own}

    def _check_templates(self) -> None:
        words = (*self.command, *self.env.values())
        if not any("{port}" in word for word in words):
            raise ValueError(
                "command has no {port}, so every replica would listen on the same port; "
                'pass it on, as in ["server", "--port", "{port}"]'
            )
        names_gpu = any("{gpu}" in word for word in words)
        if names_gpu and not self.gpus:
            raise ValueError('{gpu} is in the command but gpus is empty; list them, as in gpus: ["0", "1"]')
        if self.gpus and not names_gpu:
            raise ValueError(
                f"gpus lists {len(self.gpus)} but {{gpu}} is neither in command nor in env, "
                'so all replicas would use the same one; add env: {CUDA_VISIBLE_DEVICES: "{gpu}"}'
            )
        if len(set(self.gpus)) < len(self.gpus):
            raise ValueError(
                f"gpus {list(self.gpus)} names one twice; to share a GPU, raise replicas_per_gpu"
            )

    def _check_numbers(self) -> None:
        counts = (
            "slots_per_replica",
            "replicas_per_gpu",
            "gpus_per_replica",
            "probe_failures",
            "log_bytes_max",
        )
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"need {name} >= 1, got {getattr(self, name)}")
        if len(self.gpus) % self.gpus_per_replica:
            raise ValueError(
                f"gpus lists {len(self.gpus)}, which gpus_per_replica {self.gpus_per_replica} does not "
                "divide; list more or fewer"
            )
        for name in (
            "ready_timeout",
            "probe_interval",
            "hang_timeout",
            "restart_backoff_initial",
            "cold_start_initial",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")
        if self.sleepers_max < 0:
            raise ValueError(f"need sleepers_max >= 0, got {self.sleepers_max}")
        for name in ("drain_max", "stop_grace"):
            if getattr(self, name) < 0:
                raise ValueError(f"need {name} >= 0 s, got {getattr(self, name)}")
        if self.restart_backoff_max < self.restart_backoff_initial:
            raise ValueError(
                f"need restart_backoff_max >= restart_backoff_initial, "
                f"got {self.restart_backoff_max} < {self.restart_backoff_initial} s"
            )


def command_problems(options: LocalOptions) -> list[str]:
    """Say what keeps the command from being started here, before anything is; empty if nothing does."""
    problems, words = [], options.render_command(port=0, gpu=options.gpu_of(0))
    cwd = options.cwd or Path.cwd()
    if not cwd.is_dir():
        problems.append(f"cwd: {cwd} is not a folder; create it or name another")
    program = str(cwd / words[0]) if os.sep in words[0] else words[0]
    if shutil.which(program, path=options.render_env(port=0, gpu="").get("PATH")) is None:
        problems.append(
            f"command: {words[0]} was not found or cannot be executed; install it or give its full path"
        )
    return problems


def _render(template: str, port: int, gpu: str, grpc_port: int) -> str:
    template = template.replace("{port}", str(port)).replace("{grpc_port}", str(grpc_port))
    return template.replace("{gpu}", gpu).replace("{host}", HOST)
