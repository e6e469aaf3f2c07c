"""The processes that use GPUs: where they may run, and which belong to one replica."""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pynvml

from autoscaler.nvml import Fault, ask
from autoscaler.topology.cpu_list import parse_cpu_list
from autoscaler.topology.machine import Gpu
from autoscaler.topology.placement import ServerProcess

_PROC = Path("/proc")


def read_processes(gpus: Iterable[Gpu], handles: list[Any], replica_tag: str) -> list[ServerProcess]:
    """Return every process of this machine that the driver sees computing.

    Parameters
    ----------
    replica_tag : str
        The environment variable by which this program marks the processes of a replica. Where a process
        has none, or it cannot be read, its session stands for its replica: a server and its workers share
        one.
    """
    users: dict[int, set[int]] = defaultdict(set)
    for gpu in gpus:
        found = [] if gpu.fault else ask(pynvml.nvmlDeviceGetComputeRunningProcesses, handles[gpu.index])
        for each in [] if isinstance(found, Fault) else found:
            users[each.pid].add(gpu.index)
    each_one = (_process(pid, tuple(sorted(used)), replica_tag) for pid, used in sorted(users.items()))
    return [process for process in each_one if process is not None]


def _process(pid: int, gpus: tuple[int, ...], replica_tag: str) -> ServerProcess | None:
    """Return what /proc tells of it; None if it is gone, or lives where this program cannot see it."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").splitlines()
        session = os.getsid(pid)
    except OSError:
        return None
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return ServerProcess(
        pid=pid,
        name=status.get("Name", "?"),
        gpus=gpus,
        cpus=parse_cpu_list(status.get("Cpus_allowed_list", "")),
        memory_nodes=parse_cpu_list(status.get("Mems_allowed_list", "")),
        replica=_tag(pid, replica_tag) or f"session {session}",
    )


def _tag(pid: int, name: str) -> str:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    prefix = f"{name}=".encode()
    tag = next((each[len(prefix) :] for each in environment if each.startswith(prefix)), b"")
    return tag.decode(errors="replace").rpartition(":")[2]
