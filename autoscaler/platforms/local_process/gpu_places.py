"""Which GPUs and which cores a replica gets: those that are close to each other.

GPUs that work on one replica exchange data at every step, so they are put together by the paths between
them. Its cores are those next to its GPUs. Memory needs no more than that: the kernel takes it from the node
of the core that first touches it, and from another only where that one is full.

What is not known changes nothing: GPUs are then put together as they are listed, and no cores are chosen.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.topology.cpu_list import format_cpu_list
from autoscaler.topology.link_domain import closest_gpus
from autoscaler.topology.machine import Machine

_PIN = "taskset"
"""Sets the cores of a process and becomes the command; of util-linux, which every distribution has."""


def grouped(options: LocalOptions, machine: Machine) -> LocalOptions:
    """Return the options with the GPUs of each replica put together: `("0,1", "2,3")`."""
    count, indices = options.gpus_per_replica, _indices(machine)
    if count == 1:
        return options
    rest, groups = list(options.gpus), []
    while rest:
        chosen = rest[:count]
        if all(gpu in indices for gpu in rest):
            close = closest_gpus(machine, count, [indices[gpu] for gpu in rest])
            chosen = [gpu for gpu in rest if indices[gpu] in close]
        groups.append(",".join(chosen))
        rest = [gpu for gpu in rest if gpu not in chosen]
    return replace(options, gpus=tuple(groups), gpus_per_replica=1)


def cores_of(options: LocalOptions, machine: Machine) -> Mapping[str, frozenset[int]]:
    """Return the cores next to the GPUs of each replica, by what `{gpu}` becomes; nothing where any will do.

    Only cores that this program may use itself count.
    """
    indices = _indices(machine)
    near = {gpu.index: gpu.cpus for gpu in machine.gpus}
    allowed = frozenset(os.sched_getaffinity(0))
    found: dict[str, frozenset[int]] = {}
    for gpus in options.gpus if options.pin else ():
        names = [name.strip() for name in gpus.split(",")]
        sets = [near[indices[name]] for name in names if name in indices]
        cores = frozenset[int]().union(*sets) & allowed
        if len(sets) == len(names) and all(sets) and cores and cores < allowed:
            found[gpus] = cores
    return found


def held_on(cores: frozenset[int], words: Sequence[str]) -> list[str]:
    """Return the command that runs `words` on these cores only; `words` themselves if there are none."""
    pin = shutil.which(_PIN) if cores else None
    return [pin, "-c", format_cpu_list(cores), *words] if pin else list(words)


def _indices(machine: Machine) -> dict[str, int]:
    """Return the index of each GPU by the names that a user may give it."""
    return {name: gpu.index for gpu in machine.gpus if not gpu.fault for name in (str(gpu.index), gpu.uuid)}
