"""Which GPUs can talk to each other fast, and which of them to give to one replica.

GPUs with NVLink make a link domain with those that NVLink joins them to. GPUs that have none make one with
the others of their memory node, for between nodes every byte crosses the interconnect of the sockets. A path
that is not known separates nothing: nobody is warned of what nobody knows.
"""

from collections.abc import Iterable
from itertools import combinations

from autoscaler.topology.machine import Machine, PciPath

SETS_MAX = 20_000
"""More sets than this are not compared [1]; 8 of 16 GPUs are 12 870."""


def link_domains(machine: Machine) -> tuple[frozenset[int], ...]:
    """Return the GPUs of each domain by index, ordered by the lowest of them."""
    domains: list[set[int]] = []
    for gpu in machine.gpus:
        joined = [domain for domain in domains if any(_joined(machine, gpu.index, each) for each in domain)]
        domains = [domain for domain in domains if domain not in joined]
        domains.append({gpu.index}.union(*joined))
    return tuple(map(frozenset, sorted(domains, key=min)))


def closest_gpus(machine: Machine, count: int, among: Iterable[int]) -> tuple[int, ...]:
    """Choose `count` GPUs that are closest to each other.

    Their farthest pair is as close as it can be; among equals, all pairs together are; among equals, the
    GPUs with the lowest numbers. Where there are too many sets to compare, it grows the set one by one from
    each of them, which is exact for domains that do not overlap.

    Raises
    ------
    ValueError
        If there are fewer than `count`, or `count` < 1.
    """
    choice = sorted(set(among))
    if not 1 <= count <= len(choice):
        raise ValueError(f"need 1 <= count <= {len(choice)}, the number of GPUs to choose from, got {count}")
    sets: list[tuple[int, ...]] = []
    for number, chosen in enumerate(combinations(choice, count)):
        if number == SETS_MAX:
            sets = [_grown(machine, first, count, choice) for first in choice]
            break
        sets.append(chosen)
    return min(sets, key=lambda chosen: (_distance(machine, chosen), chosen))


def _joined(machine: Machine, one: int, other: int) -> bool:
    link = machine.link(one, other)
    if any(each.nvlinks and {one, other} & set(pair) for pair, each in machine.gpu_links.items()):
        return link.nvlinks > 0
    return link.path is None or link.path <= PciPath.NODE


_Distance = tuple[tuple[int, int], list[tuple[int, int]]]


def _distance(machine: Machine, chosen: tuple[int, ...]) -> _Distance:
    costs = sorted((machine.link(a, b).cost for a, b in combinations(chosen, 2)), reverse=True)
    return (costs[0] if costs else (0, 0)), costs


def _grown(machine: Machine, first: int, count: int, choice: list[int]) -> tuple[int, ...]:
    chosen = [first]
    while len(chosen) < count:
        rest = [gpu for gpu in choice if gpu not in chosen]
        chosen.append(min(rest, key=lambda gpu: (max(machine.link(gpu, each).cost for each in chosen), gpu)))
    return tuple(sorted(chosen))
