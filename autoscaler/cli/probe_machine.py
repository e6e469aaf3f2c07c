"""Whether what local replicas need is on this machine: the program, and the GPUs."""

import os
import shutil
import subprocess

from autoscaler.cli.findings import Finding, Level
from autoscaler.platforms.local_process.options import LocalOptions, command_problems
from autoscaler.settings import PoolSettings

_NVIDIA_SMI = "nvidia-smi"
_TIMEOUT = 10.0
"""A driver that does not answer within it tells nothing [s]."""


def probe_command(pool: PoolSettings, platform: LocalOptions) -> list[Finding]:
    """Whether the command could be started."""
    subject = f"pools.{pool.name}.platform.command"
    if problems := command_problems(platform):
        prefix = f"pools.{pool.name}.platform."
        split = (problem.partition(": ") for problem in problems)
        return [Finding(Level.PROBLEM, prefix + key, text) for key, _, text in split]
    program = platform.render_command(port=0, gpu="")[0]
    found = program if os.sep in program else shutil.which(program, path=_search_path(platform))
    return [
        Finding(Level.OK, subject, f"{program} is {found}" if found != program else f"{program} is there")
    ]


def probe_gpus(pool: PoolSettings, platform: LocalOptions) -> list[Finding]:
    """Whether the GPUs are there; nothing where nobody can tell."""
    each = [gpu for gpus in platform.gpus for gpu in gpus.split(",")]  # one replica may have several
    listed = [gpu for gpu in each if not gpu.startswith("MIG-")]  # parts of a GPU have ids of their own
    there = _gpus_of_this_machine() if listed else None
    if there is None:
        return []
    subject = f"pools.{pool.name}.platform.gpus"
    if absent := [gpu for gpu in listed if gpu not in there]:
        indices = ", ".join(gpu for gpu in there if gpu.isdigit()) or "none"
        text = f"no GPU {', '.join(absent)} in this machine, which has {indices}; list those that it has"
        return [Finding(Level.PROBLEM, subject, text)]
    return [Finding(Level.OK, subject, f"{', '.join(listed)} in this machine")]


def _search_path(platform: LocalOptions) -> str | None:
    return platform.render_env(port=0, gpu="").get("PATH")


def _gpus_of_this_machine() -> list[str] | None:
    """Return index and UUID of each GPU, or None if the driver's tool is not there or does not tell."""
    if shutil.which(_NVIDIA_SMI) is None:
        return None
    command = [_NVIDIA_SMI, "--query-gpu=index,uuid", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [word.strip() for word in answer.stdout.replace("\n", ",").split(",") if word.strip()]
