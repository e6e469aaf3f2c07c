"""Who sits in the wrong place: a server on the far socket, or one whose GPUs cannot talk fast.

Only what was *chosen* is found wrong. A process that may run on every core is left to the kernel; one that is
held on cores of another socket than its GPU has its every copy cross the interconnect.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from autoscaler.topology.cpu_list import format_cpu_list
from autoscaler.topology.link_domain import closest_gpus, link_domains
from autoscaler.topology.machine import Gpu, Machine


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """One process that uses GPUs."""

    pid: int
    name: str
    gpus: tuple[int, ...]
    """By index, ascending."""
    cpus: frozenset[int]
    """The cores it may run on; empty if they are not known."""
    memory_nodes: frozenset[int]
    """The nodes it may take memory from; empty if they are not known."""
    replica: str
    """Equal for the processes of one replica."""


class Mistake(StrEnum):
    """What is wrong with a place."""

    WRONG_SOCKET = "wrong_socket"
    FAR_MEMORY = "far_memory"
    SPLIT_REPLICA = "split_replica"


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Something that sits in the wrong place."""

    mistake: Mistake
    who: str
    text: str
    """What is wrong, and the remedy."""

    def __str__(self) -> str:
        return f"{self.who}: {self.text}"


def misplaced(machine: Machine, processes: Iterable[ServerProcess]) -> list[Misplaced]:
    """Return everything that sits in a wrong place, processes first."""
    everyone = list(processes)
    gpus = {gpu.index: gpu for gpu in machine.gpus}
    found = [
        each
        for process in everyone
        for index in process.gpus
        if index in gpus
        for each in _of_process(machine, process, gpus[index])
    ]
    used: dict[str, set[int]] = defaultdict(set)
    for process in everyone:
        used[process.replica].update(process.gpus)
    return found + [each for who, set_ in used.items() for each in split_replica(machine, who, set_)]


def split_replica(machine: Machine, who: str, gpus: Iterable[int]) -> list[Misplaced]:
    """Return the mistake if the GPUs of one replica do not share a link domain."""
    wanted, domains = set(gpus), link_domains(machine)
    here = [wanted & domain for domain in domains if wanted & domain]
    if len(here) <= 1:
        return []
    pair = _farthest(machine, wanted)
    way = machine.link(*pair).word
    text = (
        f"its GPUs {format_cpu_list(wanted)} do not share a link domain: between {pair[0]} and {pair[1]} "
        f"the path is {way}; {_instead(machine, domains, len(wanted))}"
    )
    return [Misplaced(Mistake.SPLIT_REPLICA, who, text)]


def _of_process(machine: Machine, process: ServerProcess, gpu: Gpu) -> list[Misplaced]:
    found, who = [], f"process {process.pid} ({process.name})"
    if process.cpus and gpu.cpus and process.cpus < machine.cpus and not process.cpus & gpu.cpus:
        text = (
            f"is held on cores {format_cpu_list(process.cpus)}{_socket(machine, process.cpus)}, but its GPU "
            f"{gpu.index} is next to cores {format_cpu_list(gpu.cpus)}{_socket(machine, gpu.cpus)}; start it "
            f"with {_numactl(gpu)}"
        )
        found.append(Misplaced(Mistake.WRONG_SOCKET, who, text))
    if process.memory_nodes and gpu.node is not None and gpu.node not in process.memory_nodes:
        text = (
            f"may take memory of node {format_cpu_list(process.memory_nodes)} only, but its GPU {gpu.index} "
            f"is next to node {gpu.node}; allow node {gpu.node} in its cpuset (cpuset.mems)"
        )
        found.append(Misplaced(Mistake.FAR_MEMORY, who, text))
    return found


def _socket(machine: Machine, cpus: frozenset[int]) -> str:
    on = [number for number, socket in enumerate(machine.sockets) if socket & cpus]
    return f" (socket {format_cpu_list(on)})" if on else ""


def _numactl(gpu: Gpu) -> str:
    if gpu.node is None:
        return f"taskset -c {format_cpu_list(gpu.cpus)}"
    return f"numactl --cpunodebind={gpu.node} --preferred={gpu.node}"


def _farthest(machine: Machine, gpus: set[int]) -> tuple[int, int]:
    pairs = [(one, other) for one in gpus for other in gpus if one < other]
    return max(pairs, key=lambda pair: (machine.link(*pair).cost, pair))


def _instead(machine: Machine, domains: tuple[frozenset[int], ...], count: int) -> str:
    fitting = [closest_gpus(machine, count, domain) for domain in domains if len(domain) >= count]
    if not fitting:
        return f"no domain of this machine has {count} GPUs, so expect slow exchange between them"
    sets = " or ".join(format_cpu_list(each) for each in fitting)
    return f"give it {sets} instead"
