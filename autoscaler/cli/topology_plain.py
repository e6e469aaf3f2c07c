"""A machine as plain values, for JSON."""

from collections.abc import Sequence
from typing import Any

from autoscaler.topology.cpu_list import format_cpu_list
from autoscaler.topology.link_domain import link_domains
from autoscaler.topology.machine import Link
from autoscaler.topology.placement import Misplaced
from autoscaler.topology.read_machine import Found


def as_plain(found: Found, mistakes: Sequence[Misplaced]) -> dict[str, Any]:
    """Return everything that was found; cores as lists such as `0-15,32-47`, what is not known as null."""
    machine = found.machine
    return {
        "nodes": [
            {
                "number": node.number,
                "cpus": format_cpu_list(node.cpus),
                "memory_bytes": node.memory or None,
                "distances": list(node.distances),
            }
            for node in machine.nodes
        ],
        "sockets": [format_cpu_list(socket) for socket in machine.sockets],
        "gpus": [
            {
                "index": gpu.index,
                "name": gpu.name or None,
                "uuid": gpu.uuid or None,
                "bus_id": gpu.bus_id or None,
                "node": gpu.node,
                "cpus": format_cpu_list(gpu.cpus) or None,
                "fault": gpu.fault or None,
            }
            for gpu in machine.gpus
        ],
        "nics": [
            {"name": nic.name, "bus_id": nic.bus_id, "node": nic.node, "up": nic.is_up, "rdma": nic.is_rdma}
            for nic in machine.nics
        ],
        "gpu_links": [
            {"gpus": list(pair), **_link(link)} for pair, link in sorted(machine.gpu_links.items())
        ],
        "nic_links": [
            {"gpu": gpu, "nic": nic, "path": _link(link)["path"]}
            for (gpu, nic), link in machine.nic_links.items()
        ],
        "link_domains": [sorted(domain) for domain in link_domains(machine)],
        "processes": [
            {
                "pid": process.pid,
                "name": process.name,
                "gpus": list(process.gpus),
                "cpus": format_cpu_list(process.cpus),
                "memory_nodes": format_cpu_list(process.memory_nodes),
                "replica": process.replica,
            }
            for process in found.processes
        ],
        "misplaced": [
            {"mistake": each.mistake.value, "who": each.who, "text": each.text} for each in mistakes
        ],
        "notes": list(machine.notes),
    }


def _link(link: Link) -> dict[str, Any]:
    return {"path": None if link.path is None else link.path.word, "nvlinks": link.nvlinks}
